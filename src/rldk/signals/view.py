"""The run after an event, as signals and detectors see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import nan
from typing import Any, TypeVar

from rldk.core.event import Event
from rldk.signals.reward import RewardSignal
from rldk.signals.series import EMPTY, Series, SeriesByName

__all__ = ["MIN_ROWS", "View", "once_per_event", "steps_per_row"]

MIN_ROWS = 8
_MOST_STEPS = 50.0  # per row; above that, a step is not an update but a sample or a token
_LONGEST_INTERVAL = 1000.0  # unless rows are apart by 100, 250 or 500 steps: trainers log at such intervals
_T = TypeVar("_T")


@dataclass(slots=True)
class View:
    """The event, its place, the series of all metrics so far, and the signals that are kept from event to event.

    `earlier_step` is the step a few events back, before a median of the last five could have moved; `None` near the start.
    `steps_per_row` is how many steps an event stands for in a log that is not written at each: rules that wait for so many
    steps wait for fewer of these rows, which are further apart and mostly means of what lies between. `rows_per_event` is more
    than 1 where a very long log is judged in groups of its rows.
    `reductions` says by what the KL was reduced (`token`, `sequence`, `unstated`), and `context` what else is known of
    the run: `kl_target` where the user or the log states one, and `settings`, with which it was started. `components` names the
    series of the parts of the reward.
    """

    event: Event
    index: int
    step: int
    series: SeriesByName
    earlier_step: int | None = None
    reductions: Mapping[str, str] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    steps_per_row: float = 1.0
    rows_per_event: float = 1.0
    reward: RewardSignal = field(default_factory=RewardSignal)
    components: list[str] = field(default_factory=list)
    memo: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    get: Callable[[str], Series] = field(init=False, repr=False, compare=False)
    """The series of a metric; an empty one if it was never logged. Bound once, since it is called a hundred times per event."""

    def __post_init__(self) -> None:
        self.get = self.series.__getitem__

    def rows(self, steps: float, min_rows: int = MIN_ROWS) -> float:
        """How many rows correspond to so many steps: as many, or fewer in a sparse log, but at least `min_rows`."""
        return steps if self.steps_per_row == 1.0 or steps < min_rows else max(steps / self.steps_per_row, min_rows)

    def setting(self, knob: str) -> float:
        """A number or switch that the run was started with, by its name in `core.knobs`; NaN where it is not known."""
        value = self.context["settings"].get(knob) if "settings" in self.context else None
        return float(value) if isinstance(value, (int, float)) else nan

    def first(self, *names: str) -> Series:
        """The series of the first of these metrics that has values."""
        get = self.get
        for name in names:
            found = get(name)
            if found.n:
                return found
        return EMPTY


def steps_per_row(apart: float, step: int, before: Sequence[int]) -> float:
    """How many updates a row stands for in a log whose rows are so many steps apart, with this step and these before it."""
    if not 2.0 <= apart <= _LONGEST_INTERVAL:
        return 1.0
    if apart <= _MOST_STEPS:
        return apart
    at_intervals = all((later - earlier) % _MOST_STEPS == 0.0 for earlier, later in pairwise([*before, step]))
    return _MOST_STEPS if at_intervals else 1.0


def once_per_event(measure: Callable[[View], _T]) -> Callable[[View], _T]:
    """Measure a signal when it is first read after an event, and return the same value until the next event."""

    def read(view: View) -> _T:
        found = view.memo.get(measure)
        if found is not None and found[0] is view.event:
            return found[1]  # type: ignore[no-any-return]
        value = measure(view)
        view.memo[measure] = (view.event, value)
        return value

    read.__name__, read.__doc__, read.__module__ = measure.__name__, measure.__doc__, measure.__module__
    return read
