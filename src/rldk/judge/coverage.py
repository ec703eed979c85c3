"""How many of the checks a log allows: silence must never be mistaken for health."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rldk.core.catalog import entry_of
from rldk.detectors.run.user_limit import UserLimit
from rldk.detectors.table import MACHINE_TYPES
from rldk.judge.engine import Engine

__all__ = ["CheckCoverage", "coverage_of"]

FULL, WEAK = 2 / 3, 1 / 3  # shares of the checks from which coverage is full, and below which it is weak
_OUTCOME = frozenset({"reward", "preference"})
_OF_PREFERENCES = frozenset({"preference", "gradient_norms", "run"})
"""The families that apply where preferences are trained on: there are no rollouts, and so no KL control, no advantages …"""

_UNCOUNTED = MACHINE_TYPES | {UserLimit.type}
"""Families that do not count towards coverage: the machine, and the user's own limits."""


@dataclass(frozen=True, slots=True)
class CheckCoverage:
    """Which checks could judge a run, which could not, and what they lack.

    `metrics` maps each metric to the key it came from and `reductions` says over what it was reduced; `unmapped` are the
    keys that were not recognised. `inactive` lists the checks that could not run, each with what it lacks: of `a|b` one is
    enough. `outcome` is whether a check of the reward or of preferences could run, `foreign` are the inactive checks
    that do not apply to this kind of training and are not counted, and a `supervised` training has nothing more to log.
    """

    metrics: Mapping[str, str]
    active_types: Sequence[str]
    inactive: Sequence[tuple[str, list[str]]]
    outcome: bool = True
    reductions: Mapping[str, str] = field(default_factory=dict)
    unmapped: Sequence[str] = ()
    foreign: frozenset[str] = frozenset()
    supervised: bool = False

    @property
    def active(self) -> int:
        """How many checks could run."""
        return len(self.active_types)

    @property
    def total(self) -> int:
        """How many checks there are for this kind of training."""
        return self.active + len(self._lacking)

    @property
    def _lacking(self) -> list[list[str]]:
        """What each inactive check that applies here lacks."""
        return [missing for name, missing in self.inactive if name not in self.foreign]

    @property
    def level(self) -> str:
        """How much a "healthy" means: `full` from two thirds of the checks, `weak` below a third or where none of them
        looks at the outcome (reward or preferences), else `partial`."""
        share = self.active / self.total if self.total else 0.0
        if not self.outcome or share < WEAK:
            return "weak"
        return "full" if share >= FULL else "partial"

    @property
    def best_missing(self) -> tuple[str, int] | None:
        """The one metric whose logging would enable most of the inactive checks, and how many; `None` if no single one would,
        or if the training is supervised: it has no KL, no reward and no rollouts."""
        if self.supervised:
            return None
        enabled: dict[str, int] = {}
        for missing in self._lacking:
            for name in missing[0].split("|") if len(missing) == 1 else ():
                enabled[name] = enabled.get(name, 0) + 1
        return max(enabled.items(), key=lambda pair: pair[1]) if enabled else None

    @property
    def counted(self) -> str:
        """How many checks could run, in words."""
        return f"{self.active} of {self.total} checks could run"

    @property
    def sentence(self) -> str:
        """Coverage in one sentence: `21 of 60 checks could run; logging entropy_mean would enable 14 more`."""
        best = self.best_missing
        return self.counted if best is None else f"{self.counted}; logging {best[0]} would enable {best[1]} more"

    def to_dict(self) -> dict[str, Any]:
        """Coverage as reports and other tools read it."""
        best = self.best_missing
        return {
            "level": self.level,
            "sentence": self.sentence,
            "checks_active": self.active,
            "checks_total": self.total,
            "best_missing": None if best is None else {"metric": best[0], "enables": best[1]},
            "metrics": dict(self.metrics),
            "reductions": dict(self.reductions),
            "unmapped": list(self.unmapped),
            "active": list(self.active_types),
            "inactive": [{"detector": name, "missing": missing} for name, missing in self.inactive],
        }


def coverage_of(
    engine: Engine,
    metrics: Mapping[str, str] | None = None,
    reductions: Mapping[str, str] | None = None,
    unmapped: Sequence[str] | None = None,
    supervised: bool = False,
) -> CheckCoverage:
    """The coverage of what an engine has seen. Without `metrics`, each metric counts as logged under its own name."""
    inactive = engine.inactive()
    lacking = {name for name, _ in inactive}
    active = [detector for detector in engine.detectors if detector.type not in lacking | _UNCOUNTED]
    if metrics is None:
        metrics = {name: name for name, series in engine.series.items() if series.n or series.nonfinite}
    if unmapped is None:
        unmapped = sorted(name for name in metrics if entry_of(name) is None)
    types = list(dict.fromkeys(detector.type for detector in active))
    outcome = any(detector.family in _OUTCOME for detector in active)
    return CheckCoverage(metrics, types, inactive, outcome, reductions or {}, unmapped, _foreign(engine, lacking), supervised)


def _foreign(engine: Engine, lacking: set[str]) -> frozenset[str]:
    """The inactive checks that are not counted: those of the machine, those of special kinds of training (asynchronous, with
    tools, with experts), those of rollouts in training on preferences, and those of preferences in training on rollouts."""
    logged = {name for name, series in engine.series.items() if series.n}
    paired, rewarded = any(name.startswith("preference_") for name in logged), "reward_mean" in logged
    uncounted = MACHINE_TYPES | {detector.type for detector in engine.detectors if detector.special}
    if paired and not rewarded:
        uncounted |= {detector.type for detector in engine.detectors if detector.family not in _OF_PREFERENCES}
    elif rewarded and not paired:
        uncounted |= {detector.type for detector in engine.detectors if detector.family == "preference"}
    return frozenset(lacking & uncounted)
