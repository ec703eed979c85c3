"""The line of an event, such that every reader takes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rldk.core.errors import ReadError, UsageError
from rldk.core.event import Event
from rldk.core.jsonio import to_step
from rldk.log.lines import MAX_LINE_BYTES

__all__ = ["line_of"]

_MANY_BRACKETS = 200  # fewer cannot be nested too deeply for a reader
_PARTS = ("extra", "data_slice", "rng", "model_info")


def line_of(event: Event) -> bytes:
    """The line of an event, with its newline. Parts that no reader would take are left out, and a note says which.

    Raises `UsageError` for what is not an event, has no step, or is too large by its metrics alone.
    """
    try:
        line = event.to_json()
        step = to_step(event.step)
    except (AttributeError, TypeError):
        if isinstance(event, Event):
            raise
        raise UsageError(f"Expected an `Event` to write, got {event!r:.80}: make one by `Event(step, metrics)`.") from None
    if step is None:
        raise UsageError(f"Expected the `step` of an event to be a whole number of 64 bits, got {event.step!r:.80}.")
    if len(line) >= MAX_LINE_BYTES or line.count(b"{") + line.count(b"[") > _MANY_BRACKETS:
        line = _shortened(event, line)
    return line + b"\n"


def _shortened(event: Event, line: bytes) -> bytes:
    left: list[str] = []
    parts = sorted(_PARTS, key=lambda name: -len(str(getattr(event, name))))
    while not _is_readable(line):
        if not parts:
            raise UsageError(f"The event of step {event.step} is longer than {MAX_LINE_BYTES >> 20} MiB: it is not written.")
        name = parts.pop(0)
        left.append(name)
        kept = {key: event.model_info[key] for key in ("run_id", "phase") if key in event.model_info}
        reduced: dict[str, Any] = {name: kept if name == "model_info" else {}}
        event = replace(event, **reduced)
        note = f"too large or too deeply nested to be read again, and left out: {', '.join(left)}"
        line = replace(event, notes=[*event.notes, note]).to_json()
    return line


def _is_readable(line: bytes) -> bool:
    if len(line) >= MAX_LINE_BYTES:
        return False
    try:
        Event.from_json(line)
    except ReadError:
        return False
    return True
