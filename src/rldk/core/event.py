"""One logged step of a run, in the shape of the JSONL log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rldk.core.errors import ReadError
from rldk.core.jsonio import dumps, loads, to_number, to_step

__all__ = ["Event"]

_MAPPINGS = ("rng", "data_slice", "model_info")
_KNOWN = frozenset({"step", "wall_time", "metrics", "notes", *_MAPPINGS})


@dataclass(slots=True)
class Event:
    """One logged step.

    A metric that was not logged is not in `metrics`. One that was logged as `null` (a reward that came out as `None`)
    has no value either, but its name is kept in `nulls`, since having been asked for and not being there is evidence.
    Non-finite values are kept as they are. What the log holds beyond the known fields is kept in `extra`.
    """

    step: int
    metrics: dict[str, float] = field(default_factory=dict)
    wall_time: float | None = None
    rng: dict[str, Any] = field(default_factory=dict)
    data_slice: dict[str, Any] = field(default_factory=dict)
    model_info: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    nulls: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def run_id(self) -> str | None:
        """The run this event says it belongs to."""
        run_id = self.model_info.get("run_id")
        return None if run_id is None else str(run_id)

    @property
    def phase(self) -> str | None:
        """`train`, `eval` or whatever the log calls it."""
        phase = self.model_info.get("phase")
        return None if phase is None else str(phase)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Event:
        """Read an event as a log holds it, numbers as text and whole steps as floats included."""
        step = to_step(raw.get("step"))
        if step is None:
            raise ReadError(f"Expected `step` to be a whole number, got {raw.get('step')!r:.80}.")
        given = raw.get("metrics")
        if given is not None and not isinstance(given, Mapping):
            raise ReadError(f"Expected `metrics` to be an object, got {given!r:.80}.")
        event = cls(step, wall_time=to_number(raw.get("wall_time")))
        if event.wall_time is None and raw.get("wall_time") is not None:
            event.extra["wall_time"] = raw["wall_time"]
        event._take_metrics(given or {})
        for name in _MAPPINGS:
            value = raw.get(name)
            if isinstance(value, Mapping):
                setattr(event, name, dict(value))
            elif value is not None:
                event.extra[name] = value
        event._take_notes(raw.get("notes"))
        event.extra.update((key, value) for key, value in raw.items() if key not in _KNOWN)
        return event

    def _take_metrics(self, given: Mapping[str, Any]) -> None:
        others: dict[str, Any] = {}
        nulls: list[str] = []
        for name, value in given.items():
            number = to_number(value)
            if number is not None:
                self.metrics[name] = number
            elif value is None:
                nulls.append(name)
            else:
                others[name] = value
        self.nulls = tuple(nulls)
        if others:
            self.extra["metrics"] = others

    def _take_notes(self, notes: Any) -> None:
        if isinstance(notes, list):
            self.notes = [note if isinstance(note, str) else str(note) for note in notes]
        elif notes is not None:
            self.notes = [str(notes)]

    @classmethod
    def from_json(cls, line: bytes) -> Event:
        """Read one line of a log; `ReadError` says why a line is not an event."""
        try:
            raw = loads(line)
        except ValueError as error:
            raise ReadError(f"not JSON: {error}") from None
        if not isinstance(raw, dict):
            raise ReadError(f"Expected a JSON object, got {type(raw).__name__}.")
        try:
            return cls.from_dict(raw)
        except RecursionError:  # read, but nested deeper than Python can show
            raise ReadError("not an event: nested too deeply") from None

    def to_dict(self) -> dict[str, Any]:
        """The event as the log holds it; empty parts are omitted, except `metrics`."""
        metrics: dict[str, Any] = {**self.metrics, **dict.fromkeys(self.nulls)}
        record: dict[str, Any] = {"step": self.step, "wall_time": self.wall_time, "metrics": metrics}
        if self.wall_time is None:
            del record["wall_time"]
        for name in _MAPPINGS:
            value = getattr(self, name)
            if value:
                record[name] = value
        if self.notes:
            record["notes"] = self.notes
        for key, value in self.extra.items():
            if key == "metrics":
                metrics.update(value)
            else:
                record[key] = value
        return record

    def to_json(self) -> bytes:
        """One line of the log, without its newline."""
        return dumps(self.to_dict())
