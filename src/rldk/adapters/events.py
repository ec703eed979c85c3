"""The event log of rldk itself: one event a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rldk.adapters.base import Adapter
from rldk.adapters.formats.flat import flatten
from rldk.core.jsonio import loads, to_step

__all__ = ["EventLogAdapter", "is_event", "iter_event_rows"]

_LABELS = (("model_info", "run_id"), ("model_info", "phase"), ("model_info", "git_sha"), ("rng", "seed"), ("data_slice", "tokens_in"), ("data_slice", "tokens_out"))


def is_event(row: Mapping[str, Any]) -> bool:
    """Whether a JSON object has the shape of an event."""
    return "step" in row and type(row.get("metrics")) is dict


class EventLogAdapter(Adapter):
    """Reads `R_events.jsonl` as rldk's callbacks and trainer write it."""

    name: ClassVar[str] = "rldk"
    title: ClassVar[str] = "rldk event log (JSON lines)"
    framework: ClassVar[str | None] = None

    def can_handle(self) -> bool:
        found = any(is_event(row) for row in self.source.head_objects[:20])
        self.why = "lines with `step` and `metrics`" if found else "no line with `step` and an object `metrics`"
        return found

    def read(self) -> Iterator[Mapping[str, Any]]:
        return iter_event_rows(self)


def iter_event_rows(adapter: Adapter) -> Iterator[Mapping[str, Any]]:
    """Events as flat rows: the metrics, and what places them."""
    problems = adapter.problems
    for number, line in adapter.source.lines(problems, adapter.progress):
        try:
            raw = loads(line)
        except ValueError as error:
            problems.add(number, f"not JSON: {error}")
            continue
        if type(raw) is not dict or type(metrics := raw.get("metrics")) is not dict:
            problems.add(number, "no object `metrics`")
            continue
        step = to_step(raw.get("step"))
        if step is None:
            problems.add(number, f"Expected `step` to be a whole number, got {raw.get('step')!r:.80}.")
            continue
        row: dict[str, Any] = {**flatten(metrics), "step": step}
        if (time := raw.get("wall_time")) is not None:
            row["wall_time"] = time
        for part, name in _LABELS:
            inner = raw.get(part)
            if type(inner) is dict and (value := inner.get(name)) is not None:
                row[name] = value
        info = raw.get("model_info")
        if type(info) is dict and type(info.get("reductions")) is dict:
            adapter.reductions.update(info["reductions"])
        if notes := raw.get("notes"):
            row["notes"] = "; ".join(map(str, notes)) if type(notes) is list else str(notes)
        yield row

