"""The event log of rldk itself: one event per line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from rldk.core.jsonio import loads, to_step
from rldk.ingest.adapter import Adapter
from rldk.ingest.formats.json_blocks import FastRows
from rldk.runs.table import TableBuilder

__all__ = ["EventLogAdapter", "fill_events", "is_event", "iter_events"]

def is_event(row: Mapping[str, Any]) -> bool:
    """Whether a JSON object has the shape of an event."""
    return "step" in row and type(row.get("metrics")) is dict


class EventLogAdapter(Adapter):
    """Reads `R_events.jsonl` as rldk's callbacks and trainer write it."""

    name: ClassVar[str] = "rldk"
    title: ClassVar[str] = "rldk event log (JSON lines)"
    framework: ClassVar[str | None] = "rldk"

    def can_handle(self) -> bool:
        found = any(is_event(row) for row in self.source.head_objects[:20])
        self.why = "lines with `step` and `metrics`" if found else "no line with `step` and an object `metrics`"
        return found

    def read(self) -> Iterator[Mapping[str, Any]]:
        return iter_events(self)

    def fill(self, builder: TableBuilder) -> None:
        fill_events(self, builder)


def iter_events(adapter: Adapter) -> Iterator[Mapping[str, Any]]:
    """The events of a file as they are."""
    for number, line in adapter.source.lines(adapter.problems, adapter.progress):
        if (row := _parse(adapter, number, line)) is not None:
            yield row


def fill_events(adapter: Adapter, builder: TableBuilder) -> None:
    """Put the events of a file into a table, those that look alike by the fast way."""
    rows = FastRows(builder, accepts=_whole_steps)
    rows.fill(adapter.source, lambda number, line: _parse(adapter, number, line), adapter.problems, adapter.progress)


def _whole_steps(columns: Mapping[str, Any]) -> bool:
    """Whether a block of events may be taken as a whole; a step that is not a whole number is refused by `_parse`."""
    steps = columns.get("step")
    return isinstance(steps, np.ndarray) and bool((steps == np.floor(steps)).all())


def _parse(adapter: Adapter, number: int, line: bytes) -> Mapping[str, Any] | None:
    """The event in a line as it is; an event that lacks a step or metrics is counted and located."""
    try:
        raw = loads(line)
    except ValueError as error:
        adapter.problems.add(number, f"not JSON: {error}")
        return None
    if type(raw) is not dict or type(raw.get("metrics")) is not dict:
        adapter.problems.add(number, "no object `metrics`")
        return None
    if to_step(raw.get("step")) is None:
        adapter.problems.add(number, f"Expected `step` to be a whole number, got {raw.get('step')!r:.80}.")
        return None
    return raw
