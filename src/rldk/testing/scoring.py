"""How accurate a judge is on runs with a known outcome: what it detected, how late, which cause it named, and its false alarms.

    score = score_run(label, Judged(alarms, causes))
    totals = total_scores([score, ...])

A judge is anything that raises alarms: rldk, a peer, a rule of yours. Times are in updates (the step of an event).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rldk.core.errors import UsageError
from rldk.functional.small_samples import wilson_interval

__all__ = [
    "VERDICTS", "Alarm", "Judged", "Label", "RunScore", "Share", "Totals", "by_kind", "delay_quantiles", "score_run",
    "total_scores",
]  # fmt: skip

VERDICTS = ("HEALTHY", "HARMLESS", "DEGRADED", "FAILING")
"""The outcome of a run: no fault; a fault without effect; worse than it should be; one that should be stopped."""


@dataclass(frozen=True, slots=True)
class Label:
    """What is known of a run.

    Args:
        run: its name.
        verdict: one of `VERDICTS`.
        kind: the kind of fault; empty for a healthy run.
        families: the accepted families of anomalies. An alarm of another family does not count as a detection.
        cause: its cause; empty for a healthy run.
        injected: the first update that the fault acted on.
        onset: the first update at which the outcome left the healthy range.
        updates: how many updates the run has.
        log_every: updates between two rows of the log.
        hidden: whether the log looks like that of a healthy run, so that metrics alone cannot show the fault.
    """

    run: str
    verdict: str
    kind: str = ""
    families: tuple[str, ...] = ()
    cause: str = ""
    injected: int = 0
    onset: int = 0
    updates: int = 0
    log_every: int = 1
    hidden: bool = False

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise UsageError(f"Expected `verdict` to be one of {list(VERDICTS)}, got {self.verdict!r}.")

    @property
    def is_sick(self) -> bool:
        """Whether the run should be detected."""
        return self.verdict in ("FAILING", "DEGRADED")


@dataclass(frozen=True, slots=True)
class Alarm:
    """One alarm of a judge. A judge without families gives `""`, which every label accepts."""

    step: int
    severity: str
    family: str = ""
    type: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge said about a run: its alarms, and the causes of its worst incident, the likeliest first.

    `causes` is `None` for a judge that names no causes. `misleading` says whether following its advice would do harm, `None`
    without advice; the caller decides, since advice is text.
    """

    alarms: Sequence[Alarm]
    causes: Sequence[frozenset[str]] | None = None
    misleading: bool | None = None


@dataclass(frozen=True, slots=True)
class RunScore:
    """The scores of one run. What does not apply is `None`: a healthy run has no detection, a silent judge no delay.

    `early`: detected between the injection and the onset, by the cause and before there was an effect.
    `told_after_onset` and `alarm_before_onset` go by the onset alone: an alarm before the effect is false.
    """

    label: Label
    told: bool | None = None
    early: bool | None = None
    told_after_onset: bool | None = None
    alarm_before_onset: bool | None = None
    critical: bool | None = None
    false_warnings: int = 0
    false_criticals: int = 0
    delay: int | None = None
    critical_delay: int | None = None
    right_family: bool | None = None
    right_cause: bool | None = None
    right_cause_of_two: bool | None = None
    saved: float | None = None
    misleading: bool | None = None
    alarms: tuple[Alarm, ...] = ()


def score_run(label: Label, judged: Judged) -> RunScore:
    """Score what a judge said of one run.

    An alarm of an accepted family counts from the injection of the fault on: seeing the cause before its effect is right, and
    early. Delays count from the onset of the effect, and are never negative. Before the injection, and anywhere in a healthy or
    harmless run, every alarm is false.
    """
    alarms = tuple(sorted(judged.alarms, key=lambda alarm: alarm.step))
    false = [alarm for alarm in alarms if not label.is_sick or alarm.step < label.injected]
    criticals = sum(alarm.severity == "critical" for alarm in false)
    if not label.is_sick:
        return RunScore(label, false_warnings=len(false) - criticals, false_criticals=criticals, alarms=alarms)
    after = [alarm for alarm in alarms if alarm.step >= label.injected]
    right = [alarm for alarm in after if not alarm.family or alarm.family in label.families]
    grave = [alarm for alarm in right if alarm.severity == "critical"]
    head = next((alarm for alarm in after if alarm.severity == "critical"), after[0] if after else None)
    named = [label.cause in names for names in judged.causes] if right and judged.causes is not None else None
    return RunScore(
        label,
        told=bool(right),
        early=right[0].step < label.onset if right else None,
        told_after_onset=any(alarm.step >= label.onset for alarm in right),
        alarm_before_onset=any(alarm.step < label.onset for alarm in alarms),
        critical=bool(grave),
        false_warnings=len(false) - criticals,
        false_criticals=criticals,
        delay=max(0, right[0].step - label.onset) if right else None,
        critical_delay=max(0, grave[0].step - label.onset) if grave else None,
        right_family=None if head is None or not head.family else head.family in label.families,
        right_cause=None if named is None else any(named[:1]),
        right_cause_of_two=None if named is None else any(named[:2]),
        saved=_saved(label, grave) if label.verdict == "FAILING" else None,
        misleading=judged.misleading if after else None,
        alarms=alarms,
    )


def _saved(label: Label, grave: Sequence[Alarm]) -> float:
    """The share of the run that a stop at the first critical anomaly would have saved; 0 without one."""
    return max(0.0, 1.0 - grave[0].step / label.updates) if grave and label.updates else 0.0


@dataclass(frozen=True, slots=True)
class Share:
    """A share as count of total, with Wilson's 95 % interval."""

    count: int
    of: int

    @property
    def value(self) -> float:
        return self.count / self.of if self.of else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        return wilson_interval(self.count, self.of) if self.of else (float("nan"), float("nan"))

    def __str__(self) -> str:
        if not self.of:
            return "–"
        low, high = self.interval
        return f"{self.count}/{self.of} {self.value:.0%} [{low:.0%}–{high:.0%}]"


@dataclass(slots=True)
class Totals:
    """The scores of many runs together.

    Shares are over the runs they apply to: `told` over the FAILING ones, `family` over those with an alarm after the
    injection, `cause` over those detected by a judge that names causes, `false` over healthy and harmless runs, `early` over
    those detected, `visible_told` over the FAILING ones whose fault is not hidden.
    `early_false` counts sick runs with an alarm before the injection. `told_after_onset` is over the FAILING runs and
    `alarm_before_onset` over the sick ones.
    """

    told: Share
    visible_told: Share
    early: Share
    told_after_onset: Share
    critical: Share
    degraded_told: Share
    false_critical: Share
    false_any: Share
    early_false: Share
    alarm_before_onset: Share
    family: Share
    cause: Share
    cause_of_two: Share
    misleading: Share
    saved: float
    delays: list[int] = field(default_factory=list)
    critical_delays: list[int] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The totals as JSON: each share as count, number of runs, value and interval."""
        found: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if isinstance(value, Share):
                low, high = value.interval
                known = value.of > 0
                found[name] = {"count": value.count, "of": value.of} | (
                    {"value": round(value.value, 4), "interval": [round(low, 4), round(high, 4)]} if known else {}
                )
        found["saved"] = None if self.saved != self.saved else round(self.saved, 4)
        for name, delays in (("delay", self.delays), ("critical_delay", self.critical_delays)):
            found[f"{name}_median"], found[f"{name}_p90"] = delay_quantiles(delays)
        return found


def delay_quantiles(delays: Sequence[int]) -> tuple[float | None, float | None]:
    """The median and the 90th percentile of the delays."""
    if not delays:
        return None, None
    ordered = sorted(delays)
    return float(statistics.median(ordered)), float(ordered[min(len(ordered) - 1, -(-9 * len(ordered) // 10) - 1)])


def total_scores(scores: Iterable[RunScore]) -> Totals:
    """Add up the scores of many runs."""
    rows = list(scores)
    failing = [one for one in rows if one.label.verdict == "FAILING"]
    degraded = [one for one in rows if one.label.verdict == "DEGRADED"]
    sick = [*failing, *degraded]
    sound = [one for one in rows if not one.label.is_sick]

    def share(among: Iterable[RunScore], asked: Callable[[RunScore], bool | None]) -> Share:
        answers = [answer for one in among if (answer := asked(one)) is not None]
        return Share(sum(answers), len(answers))

    return Totals(
        told=share(failing, lambda one: one.told),
        visible_told=share((one for one in failing if not one.label.hidden), lambda one: one.told),
        early=share(failing, lambda one: one.early),
        told_after_onset=share(failing, lambda one: one.told_after_onset),
        critical=share(failing, lambda one: one.critical),
        degraded_told=share(degraded, lambda one: one.told),
        false_critical=share(sound, lambda one: one.false_criticals > 0),
        false_any=share(sound, lambda one: one.false_criticals + one.false_warnings > 0),
        early_false=share(sick, lambda one: one.false_criticals + one.false_warnings > 0),
        alarm_before_onset=share(sick, lambda one: one.alarm_before_onset),
        family=share(sick, lambda one: one.right_family),
        cause=share(sick, lambda one: one.right_cause),
        cause_of_two=share(sick, lambda one: one.right_cause_of_two),
        misleading=share(sick, lambda one: one.misleading),
        saved=statistics.fmean(one.saved or 0.0 for one in failing) if failing else float("nan"),
        delays=[one.delay for one in failing if one.delay is not None],
        critical_delays=[one.critical_delay for one in failing if one.critical_delay is not None],
    )


def by_kind(scores: Iterable[RunScore]) -> Mapping[str, list[RunScore]]:
    """The scores of sick and harmless runs by the kind of their fault."""
    found: dict[str, list[RunScore]] = {}
    for one in scores:
        if one.label.kind:
            found.setdefault(one.label.kind, []).append(one)
    return found
