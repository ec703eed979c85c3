"""What a detector is: a rule about one defect, that raises once, says why, and takes it back when it is over."""

from __future__ import annotations

import inspect
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from rldk.core.anomaly import SEVERITIES, Anomaly
from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.core.stats.base import Statistic
from rldk.signals.series import EMPTY, Series, SeriesByName

__all__ = ["COMMON_SETTINGS", "SECTIONS", "Detector", "Finding", "Setting", "View"]

LEAST_ROWS = 8
MOST_CRITICALS = 10  # times that a defect is raised which keeps coming back; after that all has been said
SECTIONS = ("What it catches", "Why it matters", "When it misfires", "What to do", "References")
"""What the documentation of every detector says."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A number that a user may set: its default, what it means, and its bounds."""

    default: float
    meaning: str
    least: float | None = None
    most: float | None = None
    whole: bool = False

    def check(self, name: str, value: Any) -> float:
        """The value as a number within the bounds, or an error that says what is wrong with it."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise UsageError(f"Expected `{name}` to be a number, got {value!r}.")
        low = self.least is not None and value < self.least
        high = self.most is not None and value > self.most
        if low or high or value != value or (self.whole and value % 1 != 0):
            raise UsageError(f"Expected `{name}` to be {self._range()}, got {value!r}.")
        return float(value)

    def _range(self) -> str:
        bounds = (("of at least", self.least), ("of at most", self.most))
        said = " and".join(f" {word} {bound:g}" for word, bound in bounds if bound is not None)
        return ("a whole number" if self.whole else "a number") + said


COMMON_SETTINGS = {
    "persist": Setting(3, "checks in a row for which the condition must hold", least=1, whole=True),
    "clear": Setting(5, "checks in a row for which it must be gone", least=1, whole=True),
}
"""What can be set for every detector, beside `severity`, which overrules its own."""


@dataclass(slots=True)
class View:
    """A run as a detector sees it after an event: the event, its place, and the series of all metrics so far.

    `earlier_step` is the step some events back, before a median of the last five could have moved; `None` near the start.
    `steps_a_row` is how many steps an event stands for in a log that is not written at each: rules that wait for so many
    rows wait for fewer of these, which are further apart and mostly means of what lies between.
    `reductions` says by what the KL was reduced (`token`, `sequence`, `unstated`), and `context` what else is known of
    the run, such as `kl_target` where the user or the log states one.
    """

    event: Event
    index: int
    step: int
    series: SeriesByName
    earlier_step: int | None = None
    reductions: Mapping[str, str] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    steps_a_row: float = 1.0
    get: Callable[[str], Series] = field(init=False, repr=False, compare=False)
    """The series of a metric; an empty one if it was never logged. Bound once: rules ask a hundred times an event."""

    def __post_init__(self) -> None:
        self.get = self.series.__getitem__

    def rows(self, steps: float, least: int = LEAST_ROWS) -> float:
        """How many rows stand for so many steps: as many, or in a sparse log fewer, but no fewer than `least`."""
        return steps if self.steps_a_row == 1.0 or steps < least else max(steps / self.steps_a_row, least)

    def first(self, *names: str) -> Series:
        """The series of the first of these metrics that has values."""
        get = self.get
        for name in names:
            found = get(name)
            if found.n:
                return found
        return EMPTY


@dataclass(slots=True)
class Finding:
    """A condition that holds now; `confirmed` skips the wait for persistence where the damage is beyond doubt."""

    severity: str
    value: float
    threshold: float
    message: str
    evidence: dict[str, float] = field(default_factory=dict)
    confirmed: bool = False


class Detector(Statistic):
    """A rule about one defect.

    A subclass says its `type` (the name of the defect), its `tracker` (the family), what metrics it `needs` (each group
    lists metrics of which one must be there), its `settings`, and in `check` whether its condition holds after this
    event. `check` is called only for events that hold one of the metrics of `watches` (by default all of `needs`);
    other metrics that it looks at, where they are there, are named in `reads`.

    The base raises an anomaly when the condition has held for `persist` checks in a row, raises again only if the
    severity grows from warning to critical, and clears it when the condition has been gone for `clear` checks. A defect
    that comes back within `rearm` checks of its clearing is still the same one and is not raised anew, and none is raised
    more than ten times.

    Settings and state live in `__slots__`, so that a detector is saved and restored with the run.
    """

    __slots__ = (
        "_bad", "_good", "_good_step", "_since", "_worst", "calm", "cap", "idle", "raised", "since_clear", "times", "wait",
    )  # fmt: skip

    type: ClassVar[str]
    tracker: ClassVar[str]
    needs: ClassVar[tuple[tuple[str, ...], ...]]
    watches: ClassVar[tuple[str, ...]] = ()
    reads: ClassVar[tuple[str, ...]] = ()
    advice: ClassVar[str]
    persist: ClassVar[int] = 3
    clear: ClassVar[int] = 5
    least_rows: ClassVar[int] = LEAST_ROWS  # of `persist`, where a row stands for several steps
    rearm: ClassVar[int] = 50
    most_raises: ClassVar[int] = 3
    settings: ClassVar[Mapping[str, Setting]] = {}

    wait: int
    calm: int
    cap: str
    _good_step: int | None
    _bad: int
    _good: int
    _since: int
    _worst: str
    raised: str
    idle: bool  # neither raised nor about to be, and not lately cleared
    since_clear: int
    times: int

    def __init__(self, **given: Any) -> None:
        unknown = sorted(set(given) - set(self.settings) - set(COMMON_SETTINGS) - {"severity"})
        if unknown:
            known = [*self.settings, *COMMON_SETTINGS, "severity"]
            raise UsageError(f"{self.type} has no setting {unknown[0]!r}; it has {', '.join(known)}.")
        for name, setting in self.settings.items():
            setattr(self, name, setting.check(f"{self.type}.{name}", given.get(name, setting.default)))
        self.wait = int(COMMON_SETTINGS["persist"].check(f"{self.type}.persist", given.get("persist", self.persist)))
        self.calm = int(COMMON_SETTINGS["clear"].check(f"{self.type}.clear", given.get("clear", self.clear)))
        self.cap = given.get("severity", "")
        if self.cap not in ("", *SEVERITIES):
            raise UsageError(f"Expected `{self.type}.severity` to be one of {list(SEVERITIES)}, got {self.cap!r}.")
        self.reset()

    @property
    def key(self) -> str:
        """What tells it from the other detectors of a run."""
        return self.type

    def reset(self) -> None:
        super().reset()
        self._bad = self._good = self.times = 0
        self._since = -1
        self._good_step = None
        self._worst = self.raised = ""
        self.since_clear = 1 << 30
        self.idle = True

    @abstractmethod
    def check(self, view: View) -> Finding | None:
        """The condition's finding if it holds after this event, else `None`."""

    @classmethod
    def metrics(cls) -> tuple[str, ...]:
        """The metrics on whose arrival it is checked."""
        return cls.watches or tuple(dict.fromkeys(name for group in cls.needs for name in group))

    @classmethod
    def all_metrics(cls) -> tuple[str, ...]:
        """All metrics that it looks at: those it needs, those it watches, and those it reads where they are there."""
        needed = (name for group in cls.needs for name in group)
        return tuple(dict.fromkeys((*cls.metrics(), *needed, *cls.reads)))

    @classmethod
    def lacks(cls, present: Mapping[str, Any] | set[str]) -> list[str]:
        """What it lacks to be active: for each group of which no metric is there, its names."""
        return ["|".join(group) for group in cls.needs if not any(name in present for name in group)]

    def update(self, view: View) -> Anomaly | None:
        """Look at the run after an event; an anomaly if the defect is raised now, or grows to critical."""
        return self.settle(view, self.check(view))

    def settle(self, view: View, finding: Finding | None) -> Anomaly | None:
        """Take what `check` found. With nothing found and `idle` there is nothing to do, and no need to call this."""
        if finding is None:
            self._bad = 0
            if self.raised:
                self._good += 1
                if self._good >= self.calm:
                    self._worst, self.raised = self.raised, ""
                    self.since_clear = 0
            elif self.since_clear < self.rearm:
                self.since_clear += 1
            self.idle = not self.raised and self.since_clear >= self.rearm
            return None
        self.idle = False
        self._good = 0
        if not self._bad:
            self._since = view.index
            self._good_step = view.earlier_step
        self._bad += 1
        if self._bad < view.rows(self.wait, self.least_rows) and not finding.confirmed:
            return None
        if self.cap:
            finding.severity = self.cap
        if self.raised == "critical" or self.raised == finding.severity:
            return None
        if self.since_clear < self.rearm and finding.severity in ("warning", self._worst):
            self.raised = finding.severity
            return None
        if self.times >= (self.most_raises if finding.severity == "warning" else MOST_CRITICALS):
            return None
        self.raised = finding.severity
        self.times += 1
        return self._anomaly(view, finding)

    def _anomaly(self, view: View, finding: Finding) -> Anomaly:
        return Anomaly(
            self.type, finding.severity, self.tracker, view.step, view.index, finding.message,
            finding.value, finding.threshold, self.advice_for(view, finding), self._since, finding.evidence,
            last_good_step=self._good_step,
        )  # fmt: skip

    def advice_for(self, view: View, finding: Finding) -> str:
        """What to do, naming the knob and the direction; a subclass may name the run's present value."""
        return self.advice

    @classmethod
    def documentation(cls) -> dict[str, str]:
        """The sections of the class's docstring, with its first line under `title`."""
        text = inspect.cleandoc(cls.__doc__ or "")
        title, _, rest = text.partition("\n")
        parts = re.split(rf"^({'|'.join(SECTIONS)}):\s*", rest, flags=re.MULTILINE)
        found = {name: " ".join(body.split()) for name, body in zip(parts[1::2], parts[2::2], strict=True)}
        return {"title": title.strip(), **found}
