"""The KL is not at its target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View
from rldk.signals.channels import CHANNEL_METRICS, works
from rldk.signals.kl import coefficient, target_of
from rldk.signals.reward import SCORES

__all__ = ["TargetRangeAnomaly"]


class TargetRangeAnomaly(Detector):
    """The KL stays outside the range that was set for it.

    What it catches: a KL outside `kl_target` plus or minus `kl_target_tolerance` for twenty updates, after thirty updates
        to get there. Where only the target is known, a KL above three times the target.
    Why it matters: the target states how far the policy may go. Above it the policy moves more freely than
        intended; below it the penalty holds back learning.
    When it misfires: while the controller raises its coefficient, the reward thrives and nothing is damaged, a KL above the
        range is only a note: the controller is on its way. A target in another unit than the log (0.1 per token against a sum
        over the response) is never met; set it in the unit of the log. Without a target this detector does not run.
    What to do: above the range raise the KL coefficient or let the controller act faster (a shorter horizon), below it
        lower the coefficient.
    References: Ziegler et al. 2019, Fine-Tuning Language Models from Human Preferences.
    """

    __slots__ = ("arrival", "factor")
    type: ClassVar[str] = "target_range_anomaly"
    family: ClassVar[str] = "kl_schedule"
    needs: ClassVar = (("kl_mean",),)
    panels: ClassVar = ("kl", "kl_coef")
    reads: ClassVar = ("target_kl", *SCORES, *CHANNEL_METRICS)
    advice: ClassVar[str] = "Raise the KL coefficient if the KL is above its range, lower it if below."
    clear: ClassVar[int] = 10
    clauses: ClassVar = {
        "above": Clause(
            "the KL is above the range that was set for it", "warning",
            "the user's own target and tolerance, or three times a logged target (a judgement)", persist=20, min_rows=8,
        ),
        "below": Clause(
            "the KL is below the range that was set for it", "warning", "the user's own target and tolerance",
            persist=20, min_rows=8,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "arrival": Setting(30, "updates after which the KL must have reached the range", min=0),
        "factor": Setting(3.0, "times the target that is too high where no tolerance is set", min=1.0),
    }
    arrival: float
    factor: float

    def find(self, view: View) -> Sequence[Finding]:
        target = target_of(view)
        if not target > 0.0:
            return ()
        kl = view.get("kl_mean")
        tolerance = view.context.get("kl_target_tolerance")
        low, high = (-1e308, self.factor * target) if tolerance is None else (target - tolerance, target + tolerance)
        if low <= kl.level <= high or kl.n <= view.rows(self.arrival):
            return ()
        above = kl.level > high
        limit = high if above else low
        message = f"KL is {kl.level:.3g}, {'above' if above else 'below'} {limit:.3g}; its target is {target:.3g}."
        evidence = {"kl": kl.level, "target": target}
        severity = NOTE if above and _coefficient_rises(view) and works(view) else ""
        return (Finding(severity, kl.level, limit, message, evidence, clause="above" if above else "below"),)

    def advice_for(self, view: View, finding: Finding) -> str:
        if finding.value > finding.threshold:
            return f"Raise the KL coefficient{coefficient(view)}, or let the controller act faster (a shorter horizon)."
        return f"Lower the KL coefficient{coefficient(view)}."


def _coefficient_rises(view: View) -> bool:
    """Whether the controller has raised the coefficient since the start, and has not lowered it again."""
    coef = view.get("kl_coef")
    return coef.ready and coef.level > coef.start > 0.0 and coef.level >= coef.later
