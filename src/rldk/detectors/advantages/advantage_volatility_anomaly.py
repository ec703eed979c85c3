"""The mean advantage jumps from batch to batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.advantages import KIND, judges_mean
from rldk.signals.series import EARLY

__all__ = ["AdvantageVolatility"]


class AdvantageVolatility(Detector):
    """The mean advantage jumps from one batch to the next by half of the advantages' own spread.

    What it catches: the typical change of the mean from row to row is above half of the advantages' standard deviation, and
        five times the run's own noise at the start.
    Why it matters: a baseline that swings biases each batch differently, and consecutive updates undo each other.
    When it misfires: small batches are noisy from the start, which is the run's own noise; whitened advantages and those
        without baseline are not judged.
    What to do: lower the value function's learning rate, use larger batches, whiten the advantages; check whether batches
        alternate between data sets of different difficulty.
    References: Andrychowicz et al. 2021, What Matters in On-Policy Reinforcement Learning?
    """

    __slots__ = ("noise", "spreads")
    type: ClassVar[str] = "advantage_volatility_anomaly"
    family: ClassVar[str] = "advantage_statistics"
    needs: ClassVar = (("advantage_mean",), ("advantage_std",))
    panels: ClassVar = ("advantages", "advantage_std")
    reads: ClassVar = KIND
    advice: ClassVar[str] = "Lower the value function's learning rate, use larger batches, or whiten the advantages."
    clauses: ClassVar = {
        "jumps": Clause(
            "the mean advantage jumps from row to row by half of its spread", "warning",
            "five times the run's own noise at the start; the change alone is no sign: 95 % of sound runs reach 1.3 spreads",
            persist=15, min_rows=8,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "spreads": Setting(0.5, "typical change of the mean, in standard deviations of the advantages", min=0.0),
        "noise": Setting(5.0, "factor over the run's own noise at the start", min=1.0),
    }
    spreads: float
    noise: float

    def find(self, view: View) -> Sequence[Finding]:
        mean, std = view.get("advantage_mean"), view.get("advantage_std")
        step = mean.roughness
        if not step > self.spreads * std.level or mean.n < EARLY:
            return ()
        limit = max(self.spreads * std.level, self.noise * mean.scale)
        if not step > limit or not judges_mean(view):
            return ()
        message = f"The mean advantage jumps by {step:.3g} from row to row; the advantages' own spread is {std.level:.3g}."
        return (Finding("warning", step, limit, message, {"step": step, "noise_start": mean.scale, "std": std.level}),)
