"""New and old policy diverge within one update."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View

__all__ = ["RatioExplosion"]

AGREES = 0.1  # share of the KL that a mean ratio implies, below which the KL of the update contradicts it


class RatioExplosion(Detector):
    """The ratio of new to old probability is far from 1 on average.

    What it catches: a mean ratio that stays above 1.25 or below 0.8 (critical above 10 or below 1/10), or a spread of the ratio
        above 5, or above 1 if it has grown thirtyfold since the start.
    Why it matters: the ratio's mean is 1 by definition while old and new policy are close. Away from it, the surrogate that
        PPO maximises no longer approximates the reward, or the two log-probabilities come from different models.
    When it misfires: single tokens reach ratios of 30 in healthy runs, which is why the mean is judged and not the maximum.
        A mean that lies outside of its own minimum and maximum is not judged: such a number is no mean. Nor is one that never
        varies, or one below 1 that the KL of the update contradicts: TRL's PPO with several minibatches averages over positions
        that it never fills.
    What to do: lower the learning rate or the epochs per batch; check that old log-probabilities come from the same model,
        precision and temperature as the new ones.
    References: Schulman et al. 2017, Proximal Policy Optimization Algorithms.
    """

    __slots__ = ("critical_factor", "factor", "grown", "wide")
    type: ClassVar[str] = "ratio_explosion"
    family: ClassVar[str] = "policy"
    needs: ClassVar = (("ratio_mean", "ratio_std"),)
    reads: ClassVar = ("ratio_min", "ratio_max", "kl_update")
    panels: ClassVar = ("ratio", "kl_update")
    advice: ClassVar[str] = (
        "Lower the learning rate or the epochs per batch; check that both log-probabilities use one model and temperature."
    )
    clauses: ClassVar = {
        "far_away": Clause(
            "the mean ratio of new to old probability is above 10 or below 1/10", "critical",
            "definition: the mean of the ratio is 1; the factor of ten is a judgement", persist=4, min_rows=4,
        ),
        "away": Clause(
            "the mean ratio of new to old probability is above 1.25 or below 0.8", "warning",
            "definition: the mean of the ratio is 1; 44 sound runs of the tune split stay within 3 % of it",
            persist=10, min_rows=4,
        ),
        "wide": Clause(
            "the spread of the ratio of new to old probability is above 5, or far above its start", "warning",
            "tune split: the widest of 44 sound runs is 0.6", persist=4, min_rows=4,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "factor": Setting(1.25, "factor above or below 1 at which the mean ratio counts", min=1.0),
        "critical_factor": Setting(10.0, "factor above or below 1 at which it is critical", min=1.0),
        "wide": Setting(5.0, "spread of the ratio", min=0.0),
        "grown": Setting(30.0, "times its start at which a spread above 1 counts too", min=1.0),
    }
    factor: float
    critical_factor: float
    wide: float
    grown: float

    def find(self, view: View) -> Sequence[Finding]:
        ratio, spread = view.get("ratio_mean"), view.get("ratio_std")
        level = ratio.level if ratio.ready else 1.0
        wide = spread.ready and (spread.level > self.wide or spread.level > max(self.grown * spread.start, 1.0))
        near = 1.0 / self.factor <= level <= self.factor
        if not near and not _is_mean(view, level):
            level, near = 1.0, True
        if near and not wide:
            return ()
        away = max(level, 1.0 / level) if level > 0 else float("inf")
        clauses = ("wide",) if near else ("away", "far_away") if away > self.critical_factor else ("away",)
        value, limit = (spread.level, self.wide) if near else (level, self.factor)
        message = f"The mean ratio of new to old probability is {level:.3g}" + (
            f", with a spread of {spread.level:.3g}." if wide else "."
        )
        return [Finding("", value, limit, message, {"ratio_mean": level}, clause=clause) for clause in clauses]


def _is_mean(view: View, level: float) -> bool:
    """Whether it can be the mean of what lies between the smallest and the largest ratio, of updates with this KL."""
    low, high, update = view.get("ratio_min"), view.get("ratio_max"), view.get("kl_update")
    if update.ready and 0.0 < level < 1.0 and 0.0 <= update.level < AGREES * 0.5 * log(level) ** 2:
        return False
    ratio = view.get("ratio_mean")
    if not update.n and ratio.same == ratio.n:
        return False  # a setting: what is measured varies
    return not (low.ready and high.ready) or low.level <= level <= high.level
