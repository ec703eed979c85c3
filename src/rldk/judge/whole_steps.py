"""What a training loop logs of one step in several calls, put together so that the step is judged once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rldk.core.catalog.axes import HELD_OUT
from rldk.core.event import Event
from rldk.runs.canonical import prefix_held_out

__all__ = ["WholeSteps"]


class WholeSteps:
    """Says when the rows of a step are judged, so that a live run is judged like its log, where they are one row.

    A step is held back only where the step before it came in several rows: it is then judged when the next one begins. Any other
    is judged at its first row, and its further rows add to it.

    Attributes:
        step: the step of the last row.
        held: what is held back.
    """

    def __init__(self) -> None:
        self.step: int | None = None
        self.held: Event | None = None
        self._rows = 0
        self._several = False  # whether the step before this one came in several rows

    def release(self) -> Event | None:
        """What was held back, to be judged now."""
        held, self.held = self.held, None
        return held

    def begins(self, step: int) -> bool:
        """Whether a row of this step begins another step than the last row's."""
        return step != self.step

    def hold(self, event: Event) -> bool:
        """Take the next row; whether it is held back. Otherwise it is to be judged now."""
        if event.step == self.step:
            self._rows += 1
        else:
            self._several, self._rows, self.step = self._rows > 1, 1, event.step
        if self._several:
            self.held = event if self.held is None else _joined(self.held, event)
        return self._several

    def complete(self, event: Event) -> list[Event]:
        """Take the next row; what is to be judged now."""
        ready = [held] if self.begins(event.step) and (held := self.release()) is not None else []
        return ready if self.hold(event) else [*ready, event]

    def state_dict(self) -> dict[str, Any]:
        """What it knows of the rows so far, as JSON can hold it. What is held back is not part of it."""
        return {"step": self.step, "rows": self._rows, "several": self._several}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue with the rows after those that `state` knows."""
        self.step, self._rows, self._several = state["step"], state["rows"], state["several"]


def _joined(first: Event, more: Event) -> Event:
    """Two rows of a step as one: of each metric what was logged last, and the phase of training."""
    first, more = prefix_held_out(first), prefix_held_out(more)
    info = {**first.model_info, **more.model_info}
    if "phase" in first.model_info and str(more.phase).lower() in HELD_OUT:
        info["phase"] = first.model_info["phase"]
    metrics = {**first.metrics, **more.metrics}
    for name in more.nulls:
        metrics.pop(name, None)
    nulls = dict.fromkeys((*(name for name in first.nulls if name not in more.metrics), *more.nulls))
    return Event(
        more.step, metrics, first.wall_time if more.wall_time is None else more.wall_time, {**first.rng, **more.rng},
        {**first.data_slice, **more.data_slice}, info, [*first.notes, *more.notes], tuple(nulls), {**first.extra, **more.extra},
    )  # fmt: skip
