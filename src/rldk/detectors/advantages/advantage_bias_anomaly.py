"""The advantages are no longer centred."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.advantages import KIND, judges_mean
from rldk.signals.channels import ON_POLICY, is_on_policy
from rldk.signals.reward import SCORES
from rldk.signals.series import EARLY

__all__ = ["AdvantageBias"]

OFF_CENTRE = 0.4  # spreads of the advantages


class AdvantageBias(Detector):
    """The mean advantage is a full spread away from zero: nearly all samples are pushed in the same direction.

    What it catches: |mean| above one standard deviation of the advantages, and three times as far (in spreads) as at the
        run's start, for twenty rows. In methods that compare the responses of a group, a loss that is far from 0 although
        each batch is used once: then something other than the advantages of the group is optimised.
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
    reads: ClassVar = (*KIND, *SCORES, "loss", "kl_mean", "kl_coef", "num_generations", *ON_POLICY)
    advice: ClassVar[str] = (
        "Whiten the advantages, or fix the value function: raise its learning rate, check its explained variance."
    )
    clauses: ClassVar = {
        "shifted": Clause(
            "the mean advantage is more than a spread away from zero", "warning",
            "definition: a baseline gives a mean of 0; 95 % of 86 sound runs of the tune split stay below 0.9 spreads",
            persist=20,
        ),
        "loss_off_centre": Clause(
            "the loss of a group method is far from that of centred advantages, although the ratio is 1", "warning",
            "definition: minus the mean advantage, which is 0 within a group; 80 sound runs of the corpus stay below 0.08 "
            "spreads, advantages without their sign give 0.8", persist=10, min_rows=4,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "spreads": Setting(1.0, "distance of the mean from 0, in standard deviations", min=0.0),
        "moved": Setting(3.0, "factor over the distance at the start", min=1.0),
    }
    spreads: float
    moved: float

    def find(self, view: View) -> Sequence[Finding]:
        return [found for found in (self._shifted(view), _off_centre(view)) if found is not None]

    def _shifted(self, view: View) -> Finding | None:
        mean, std = view.get("advantage_mean"), view.get("advantage_std")
        bias = abs(mean.level)
        if not bias > self.spreads * std.level or mean.n < EARLY:
            return None
        began = abs(mean.base) / std.base if std.base > 0.0 else 0.0
        limit = max(self.spreads, self.moved * began)
        if not bias > limit * std.level > 0.0 or not judges_mean(view) or view.reward.was_changed(view.index):
            return None
        ratio = bias / std.level
        message = f"The mean advantage is {mean.level:.3g}, {ratio:.3g} spreads from 0; it started at {began:.3g}."
        evidence = {"mean": mean.level, "std": std.level, "bias_start": began}
        return Finding("", ratio, limit, message, evidence, clause="shifted")

    def advice_for(self, view: View, finding: Finding) -> str:
        if finding.clause == "loss_off_centre":
            return "Check what is done to the advantages before the loss: their sign, a mask, an entropy bonus beside them."
        return self.advice


def _off_centre(view: View) -> Finding | None:
    """Whether the loss shows that what is optimised is not the advantages of the group."""
    loss, std = view.get("loss"), view.get("advantage_std")
    if loss.n < EARLY or not view.get("num_generations").n or not std.level > 0.05 or not is_on_policy(view):
        return None
    kl, coefficient = view.get("kl_mean"), view.get("kl_coef")
    penalty = coefficient.last * kl.level if coefficient.n and kl.n else 0.0
    if not abs(loss.level - penalty) > OFF_CENTRE * std.level or not abs(loss.slow) > OFF_CENTRE * std.level:
        return None
    away = abs(loss.level - penalty) / std.level
    told = f"The loss is {loss.level:.3g} beside a KL penalty of {penalty:.2g}"
    message = f"{told}: the advantages have a mean of {away:.2g} spreads, which should be 0."
    return Finding("", away, OFF_CENTRE, message, {"loss": loss.level, "std": std.level}, clause="loss_off_centre")
