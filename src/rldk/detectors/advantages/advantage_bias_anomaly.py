"""The advantages are no longer centred."""

from __future__ import annotations

from typing import ClassVar

from rldk.detectors.advantages.kind import BASELINE, KIND, judges_mean
from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.reward import SCORES

__all__ = ["AdvantageBias"]


class AdvantageBias(Detector):
    """The mean advantage is a full spread away from zero: nearly all samples are pushed in the same direction.

    What it catches: |mean| above one standard deviation of the advantages, and three times as far (in spreads) as at the
        run's start, for twenty rows.
    Why it matters: a good baseline makes the mean 0. Without one, everything that was sampled becomes more likely (or
        less), whatever it is, and the variance of the gradient grows.
    When it misfires: whitened advantages have no mean to judge; an estimator without baseline (verl's GRPO without
        whitening) logs the reward itself, which is recognised. An untrained value function is biased in its first rows:
        these define the run's own start. After a change of the reward the value function must learn its new level.
    What to do: whiten the advantages, or fix the value function (its learning rate, its coefficient, its clipping
        range); look at the explained variance.
    References: Schulman et al. 2016, High-Dimensional Continuous Control Using Generalized Advantage Estimation.
    """

    __slots__ = ("moved", "spreads")
    type: ClassVar[str] = "advantage_bias_anomaly"
    family: ClassVar[str] = "advantage_statistics"
    needs: ClassVar = (("advantage_mean",), ("advantage_std",))
    panels: ClassVar = ("advantages", "advantage_std")
    reads: ClassVar = (*KIND, *SCORES)
    advice: ClassVar[str] = (
        "Whiten the advantages, or fix the value function: raise its learning rate, check its explained variance."
    )
    persist: ClassVar[int] = 20
    clauses: ClassVar = {
        "shifted": Clause(
            "the mean advantage is more than a spread away from zero", "warning",
            "definition: a baseline gives a mean of 0; 95 % of 86 sound runs of the tune split stay below 0.9 spreads",
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "spreads": Setting(1.0, "distance of the mean from 0, in standard deviations", min=0.0),
        "moved": Setting(3.0, "factor over the distance at the start", min=1.0),
    }
    spreads: float
    moved: float

    def check(self, view: View) -> Finding | None:
        mean, std = view.get("advantage_mean"), view.get("advantage_std")
        bias = abs(mean.level)
        if not bias > self.spreads * std.level or mean.n < BASELINE:
            return None
        began = abs(mean.base) / std.base if std.base > 0.0 else 0.0
        limit = max(self.spreads, self.moved * began)
        if not bias > limit * std.level > 0.0 or not judges_mean(view) or view.reward.was_changed(view.index):
            return None
        ratio = bias / std.level
        message = f"The mean advantage is {mean.level:.3g}, {ratio:.3g} spreads from 0; it started at {began:.3g}."
        return Finding("warning", ratio, limit, message, {"mean": mean.level, "std": std.level, "bias_start": began})
