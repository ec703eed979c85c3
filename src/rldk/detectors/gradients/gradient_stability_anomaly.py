"""The gradient norm spikes repeatedly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View
from rldk.detectors.gradients.norms import own_norm
from rldk.signals.channels import CHANNEL_METRICS, works
from rldk.signals.optimizer import NORMS, RATES, gradient_norm, with_rate
from rldk.signals.reward import SCORES
from rldk.signals.series import EARLY

__all__ = ["GradientStability"]

MEMORY = 0.04  # weight of a new row in the share of spikes: about the last 25 rows


class GradientStability(Detector):
    """Spikes of the gradient norm have become frequent.

    What it catches: a fifth of the recent rows have a gradient norm above five times the run's own normal and above 10,
        while the rows between are ordinary.
    Why it matters: every fifth step is dominated by a few extreme samples; such runs drift and end in an explosion.
    When it misfires: single spikes are normal and do not count (each adds 4 % to the share). Norms that are 0 or small in
        half of the rows have a large relative spread and stay below 10. A norm that is high in most rows is an explosion.
        After a change of the reward they do not count, and while the reward thrives and nothing is damaged they are only a note.
    What to do: clip the gradient norm at 1, filter or clip extreme rewards and advantages, use larger batches, and lower
        the learning rate.
    References: Zhang et al. 2020, Why Gradient Clipping Accelerates Training.
    """

    __slots__ = ("factor", "healthy", "limit", "share")
    type: ClassVar[str] = "gradient_stability_anomaly"
    family: ClassVar[str] = "gradient_norms"
    needs: ClassVar = (NORMS,)
    panels: ClassVar = ("gradients",)
    reads: ClassVar = (*SCORES, *CHANNEL_METRICS, *RATES)
    advice: ClassVar[str] = (
        "Clip the gradient norm at 1, clip extreme rewards and advantages, use larger batches, lower the learning rate."
    )
    clear: ClassVar[int] = 20
    clauses: ClassVar = {
        "spikes": Clause(
            "a fifth of the recent gradient norms are spikes", "warning",
            "tune split: 95 % of 97 sound runs have spikes in at most 6 % of their rows", persist=8, min_rows=8,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "factor": Setting(5.0, "factor over the run's own normal that makes a spike", min=1.0),
        "healthy": Setting(10.0, "norm below which nothing counts as a spike", min=0.0),
        "limit": Setting(0.2, "share of spikes among the recent rows", min=0.0, max=1.0),
    }
    factor: float
    healthy: float
    limit: float
    share: float

    def reset(self) -> None:
        super().reset()
        self.share = 0.0

    def find(self, view: View) -> Sequence[Finding]:
        norm = gradient_norm(view)
        spike = norm.last > self.healthy and norm.n > EARLY and norm.last > self.factor * own_norm(norm)
        spike = spike and not view.reward.was_changed(view.index)  # the value function learns the new scale
        self.share = share = self.share + MEMORY * (spike - self.share)
        if share < self.limit or norm.level > 2.0 * self.factor * own_norm(norm):
            return ()
        own = own_norm(norm)
        message = f"{share:.0%} of the recent gradient norms are above {self.factor * own:.3g}; normal is {own:.3g}."
        severity = NOTE if works(view, besides="gradients") else "warning"
        return (Finding(severity, share, self.limit, message, {"share": share, "normal": own, "norm": norm.last}),)

    def advice_for(self, view: View, finding: Finding) -> str:
        return with_rate(self.advice, view)
