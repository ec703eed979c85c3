"""Importance weights scale the update down although sampler and trainer agree."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View
from rldk.signals.channels import CHANNEL_METRICS, works
from rldk.signals.reward import SCORES

__all__ = ["ThrottledUpdate"]

AGREE = {"mismatch_logp_diff": 0.1, "mismatch_kl": 0.02, "mismatch_prob_diff": 0.05}
"""Up to where sampler and trainer agree: a tenth of a nat per token is a factor of 0.9 to 1.1, and a KL of 0.02 a typical
difference of 0.2 nats (the KL is half its square)."""


class ThrottledUpdate(Detector):
    """The mean importance weight is far below 1 while the log-probabilities of sampler and trainer agree.

    What it catches: a mean weight of trainer over sampler that is below 0.7 from the start, or falls below 0.5, though the same
        tokens get nearly the same log-probabilities on both sides; below 0.1 it is critical.
    Why it matters: each gradient is multiplied by its weight. Where weights are products over a whole response, a tiny
        difference per token becomes a factor near 0 for a long response: the update is throttled, long responses most of all,
        and nothing else looks wrong.
    When it misfires: a sampler that differs on purpose (another temperature, top-p) has weights far from 1 too; then the
        log-probabilities usually differ as well. Weights that were low from the start are only a note while the reward thrives
        and nothing is damaged.
    What to do: use weights per token instead of per sequence, or weights that are normalised by length; check that top-p,
        temperature and the chat template are the same on both sides.
    References: trl#5814 (mean weight 0.569, and 0.993 after the fix), NeMo-RL#2269 (0.0596, gradient norm 8.6e-5); verl's guide
        to rollout correction (a mean weight outside 0.5 to 2).
    """

    __slots__ = ("fallen", "low", "lowest")
    type: ClassVar[str] = "throttled_update"
    family: ClassVar[str] = "policy"
    needs: ClassVar = (("sampling_ratio_mean",), tuple(AGREE))
    panels: ClassVar = ("mismatch", "gradients")
    watches: ClassVar = ("sampling_ratio_mean",)
    reads: ClassVar = (*SCORES, *CHANNEL_METRICS)
    special: ClassVar[bool] = True
    advice: ClassVar[str] = (
        "Use importance weights per token instead of per sequence, or normalise them by length, and check that top-p and "
        "temperature are the same in sampler and trainer."
    )
    clear: ClassVar[int] = 10
    clauses: ClassVar = {
        "stopped": Clause(
            "importance weights remove nine tenths of the update, though log-probabilities agree", "critical",
            "definition: the gradient is scaled by the weight; NeMo-RL#2269 had 0.06", persist=30, min_rows=10,
        ),
        "throttled": Clause(
            "the mean importance weight is below 0.7 from the start, though log-probabilities agree", "warning",
            "before the first updates both sides have the same weights; trl#5814 had 0.57 before its fix and 0.99 after",
            persist=15, min_rows=5,
        ),
        "fallen": Clause(
            "the mean importance weight has fallen below 0.5, though log-probabilities agree", "warning",
            "verl's guide to rollout correction; a healthy public run stays between 0.53 and 0.68",
            persist=15, min_rows=5,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "low": Setting(0.7, "mean importance weight from the start below which the update is throttled", min=0.0, max=1.0),
        "fallen": Setting(0.5, "the same where the weight has been near 1 before", min=0.0, max=1.0),
        "lowest": Setting(0.1, "mean importance weight below which hardly anything is trained", min=0.0, max=1.0),
    }
    low: float
    fallen: float
    lowest: float

    def find(self, view: View) -> Sequence[Finding]:
        weight = view.get("sampling_ratio_mean")
        began_low = weight.high < self.low
        limit = self.low if began_low else self.fallen
        if not weight.ready or not 0.0 <= weight.level < limit:
            return ()
        gaps = {name: abs(view.get(name).level) for name in AGREE if view.get(name).ready}
        if not gaps or any(gap > AGREE[name] for name, gap in gaps.items()):
            return ()  # the two sides really differ: that is `sampler_mismatch`
        if weight.level >= self.lowest and exp(-2.0 * gaps.get("mismatch_logp_diff", 0.0)) * limit < weight.level:
            return ()  # what the differences per token explain
        name, gap = next(iter(gaps.items()))
        words = {"mismatch_logp_diff": "log-probabilities", "mismatch_kl": "the KL", "mismatch_prob_diff": "probabilities"}[name]
        message = (
            f"The mean importance weight is {weight.level:.3g}, so that updates are scaled down, though sampler and trainer "
            f"agree ({words}: {gap:.2g})."
        )
        evidence = {"weight": weight.level, name: gap, "log_weight": log(max(weight.level, 1e-12))}
        clause, severity = ("throttled", NOTE if works(view) else "") if began_low else ("fallen", "")
        found = [Finding(severity, weight.level, limit, message, evidence, clause=clause)]
        if weight.level < self.lowest:
            found.append(Finding("", weight.level, self.lowest, message, evidence, clause="stopped"))
        return found
