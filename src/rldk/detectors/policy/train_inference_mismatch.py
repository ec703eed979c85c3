"""The policy that samples is not the one that is trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View

__all__ = ["TrainInferenceMismatch"]

LIMITS = {"mismatch_kl": "kl", "mismatch_logp_diff": "logp", "mismatch_prob_diff": "prob", "mismatch_masked_frac": "masked"}


class TrainInferenceMismatch(Detector):
    """Sampler and trainer give the same tokens different probabilities, and increasingly so.

    What it catches: a KL or difference of log-probabilities between the sampling engine and the trainer that stays
        above what numerical precision explains and far above the run's own start, or a large share of tokens masked for
        that reason.
    Why it matters: the gradient is computed for text that this policy would not have written; training drifts, often into a
        sudden collapse.
    When it misfires: asynchronous training samples with weights a few steps old and tolerates a small gap; single
        spikes occur. The gap must therefore last and must have grown.
    What to do: sync the weights of the sampler each step, use the same precision and temperature on both sides, correct
        with truncated importance weights, and mask tokens that disagree.
    References: Yao et al. 2025, Your Efficient RL Framework Secretly Brings You Off-Policy RL Training.
    """

    __slots__ = ("growth", "kl", "logp", "masked", "prob")
    type: ClassVar[str] = "train_inference_mismatch"
    family: ClassVar[str] = "policy"
    needs: ClassVar = (tuple(LIMITS),)
    panels: ClassVar = ("mismatch",)
    advice: ClassVar[str] = (
        "Sync the sampler's weights each step, use one precision and temperature, and correct with truncated importance weights."
    )
    clauses: ClassVar = {
        "gap_grown": Clause(
            "sampler and trainer disagree far more than at the start", "warning",
            "half of the |KL| of 0.1 that verl's guide calls too much, and the 0.25 to 0.3 nats per token that such a KL implies "
            "(it is half the square); a tenth of the probability or 30 % of the tokens is as much; routing alone, the largest "
            "known cause, doubles the gap (arXiv 2510.11370), so ten times the start is more than precision and routing explain",
            persist=10, min_rows=8,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "kl": Setting(0.05, "KL per token between sampler and trainer", min=0.0),
        "logp": Setting(0.25, "mean difference of log-probabilities", min=0.0),
        "prob": Setting(0.1, "mean difference of probabilities", min=0.0, max=1.0),
        "masked": Setting(0.3, "share of tokens masked", min=0.0, max=1.0),
        "growth": Setting(10.0, "factor over its start that it must reach", min=1.0),
    }
    kl: float
    logp: float
    prob: float
    masked: float
    growth: float

    def find(self, view: View) -> Sequence[Finding]:
        for name, setting in LIMITS.items():
            gap = view.get(name)
            if gap.ready:
                limit = max(getattr(self, setting), self.growth * abs(gap.start))
                if gap.level > limit:
                    message = f"{name} is {gap.level:.3g}, {gap.level / max(abs(gap.start), 1e-12):.3g} times its start."
                    return (Finding("warning", gap.level, limit, message, {name: gap.level, "start": gap.start}),)
        return ()
