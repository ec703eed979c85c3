"""The scale of the advantages has changed by an order of magnitude."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.advantages import KIND, whitened
from rldk.signals.series import EARLY

__all__ = ["AdvantageScale"]


class AdvantageScale(Detector):
    """The spread of the advantages is many times what it was at the start, or a small fraction of it.

    What it catches: the standard deviation of unwhitened advantages stays above eight times the run's own normal, or below
        a thirtieth of it.
    Why it matters: the policy's step is proportional to the advantages: eight times the spread is eight times the learning
        rate, and a thirtieth is almost no step.
    When it misfires: the spread falls severalfold as the value function learns and as rewards approach their limit, which is
        why the lower limit is wide. Whitened advantages always have scale 1 and are not judged.
    What to do: whiten the advantages or normalise the rewards; if it grew, look for a change in the reward's scale and check
        the value loss; if it vanished, check whether the rewards still differ.
    References: Engstrom et al. 2020, Implementation Matters in Deep Policy Gradients.
    """

    __slots__ = ("fall", "rise")
    type: ClassVar[str] = "advantage_scale_anomaly"
    family: ClassVar[str] = "advantage_statistics"
    needs: ClassVar = (("advantage_std",),)
    panels: ClassVar = ("advantage_std", "advantages")
    reads: ClassVar = KIND
    advice: ClassVar[str] = (
        "Whiten the advantages or normalise the rewards; look for a change in the reward's scale and check the value loss."
    )
    clauses: ClassVar = {
        "rescaled": Clause(
            "the spread of advantages is many times its normal, or a small fraction of it", "warning",
            "tune split: 95 % of 86 sound runs stay between a fifth and 1.4 times their start; 8 and 30 are a judgement",
            persist=20, min_rows=8,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "rise": Setting(8.0, "factor over its own normal that the spread may reach", min=1.0),
        "fall": Setting(30.0, "part of its own normal to which the spread may fall", min=1.0),
    }
    rise: float
    fall: float

    def find(self, view: View) -> Sequence[Finding]:
        std = view.get("advantage_std")
        normal, level = std.base, std.level
        if (normal <= self.fall * level and level <= self.rise * normal) or std.n < EARLY:
            return ()
        if view.reward.was_changed(view.index):
            return ()  # the scale of the reward itself changed
        if not normal > 0.0 or whitened(view) or (level < normal and std.slow > 0.5 * normal):
            return ()  # small batches reach 0
        limit = self.rise * normal if level > normal else normal / self.fall
        message = f"The spread of the advantages is {level:.3g}, {level / normal:.3g} times the run's own normal of {normal:.3g}."
        return (Finding("warning", level, limit, message, {"std": level, "normal": normal}),)
