"""The KL penalty is missing, or pays for leaving the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View

__all__ = ["KlPenaltyOff"]

HELD = 5  # rows with a penalty after which losing it is a change
AT_ONCE = 0.2  # share of its highest that the coefficient had right before
MEASURABLE = 0.3  # KL from which on its penalty tells the coefficient


class KlPenaltyOff(Detector):
    """The KL coefficient is negative, was lost on the way, or is 0.

    What it catches: a coefficient below 0, as configured or as the penalty and the KL in the log imply; one that falls from a
        fifth or more of its highest to nothing at once. A coefficient that is 0 from the start is a note.
    Why it matters: a negative coefficient pays the policy for leaving its reference, and it will. Without the penalty the
        policy goes wherever the reward is, also where the reward is wrong.
    When it misfires: training without a penalty is a choice, and TRL's GRPO makes it by default: as such it is a note. A
        penalty that was faded out step by step is no loss. Where the KL is not measured, which is so in GRPO with `beta=0`,
        only the loss of a coefficient is seen.
    What to do: set the coefficient (`kl_coef`, `beta`) to 0.01 to 0.1, or back to what it was; where 0 is meant, limit the
        KL yourself and watch held-out quality.
    References: Gao et al. 2023, Scaling Laws for Reward Model Overoptimization; Ziegler et al. 2019.
    """

    __slots__ = ("_before", "_highest", "_lost", "_on", "nothing")
    type: ClassVar[str] = "kl_penalty_off"
    family: ClassVar[str] = "kl_schedule"
    needs: ClassVar = (("kl_coef", "kl_penalty_reward"),)
    panels: ClassVar = ("kl_coef", "kl")
    reads: ClassVar = ("kl_mean",)
    advice: ClassVar[str] = "Set the KL coefficient (`kl_coef`, `beta`) to 0.01 to 0.1, or limit the KL yourself."
    clear: ClassVar[int] = 3
    clauses: ClassVar = {
        "negative": Clause(
            "the KL coefficient is negative", "critical", "definition: the penalty has the wrong sign", persist=1, least=1,
        ),
        "pays": Clause(
            "the KL term of the reward is positive while the KL is", "critical",
            "definition: the penalty is minus the coefficient times the KL", persist=5, least=3,
        ),
        "lost": Clause(
            "the KL coefficient fell to nothing at once", "warning", "schedules fade a coefficient out step by step",
            persist=2, least=1,
        ),
        "chosen": Clause("the KL coefficient is 0", NOTE, "a choice, and TRL's default for GRPO"),
    }  # fmt: skip
    settings: ClassVar = {"nothing": Setting(1e-4, "coefficient below which there is no penalty to speak of", least=0.0)}
    nothing: float
    _on: int
    _before: float
    _highest: float
    _lost: float

    def reset(self) -> None:
        super().reset()
        self._on = 0
        self._before = self._highest = self._lost = 0.0

    def find(self, view: View) -> Sequence[Finding]:
        series = view.get("kl_coef")
        return self._configured(series.last) if series.n and series.last == series.last else self._implied(view)

    def _configured(self, coef: float) -> Sequence[Finding]:
        if coef >= self.nothing:
            self._on += 1
            self._before, self._lost = coef, 0.0
            self._highest = max(self._highest, coef)
            return ()
        if coef < 0.0:
            message = f"The KL coefficient is {coef:.3g}: it pays the policy for leaving its reference."
            return (Finding("", coef, 0.0, message, {"coef": coef}, clause="negative"),)
        if self._on >= HELD and self._before > AT_ONCE * self._highest:
            self._lost = self._before
        self._before = 0.0
        if self._lost:
            message = f"The KL coefficient fell from {self._lost:.3g} to {coef:.3g} at once."
            return (Finding("", coef, self._lost, message, {"coef": coef, "coef_before": self._lost}, clause="lost"),)
        message = f"The KL coefficient is {coef:.3g}: nothing holds the policy near its reference. That may be meant."
        return (Finding("", coef, self.nothing, message, {"coef": coef}, clause="chosen"),)

    def _implied(self, view: View) -> Sequence[Finding]:
        """Where no coefficient is logged, the penalty and the KL of the row give it."""
        penalty, kl = view.get("kl_penalty_reward"), view.get("kl_mean")
        if penalty.index != kl.index or not abs(kl.last) > MEASURABLE:
            return ()
        coef = -penalty.last / kl.last
        if coef < -self.nothing:
            message = f"The KL term of the reward is {penalty.last:.3g} at a KL of {kl.last:.3g}: the coefficient is negative."
            return (Finding("", coef, 0.0, message, {"coef": coef}, clause="pays"),)
        found = self._configured(max(coef, 0.0))
        return [finding for finding in found if finding.clause == "lost"]

    def advice_for(self, view: View, finding: Finding) -> str:
        before = finding.evidence.get("coef_before")
        if before is not None:
            return f"Set the KL coefficient back to {before:.3g}, unless this was meant."
        return "Make the KL coefficient (`kl_coef`, `beta`) positive: 0.01 to 0.1." if finding.value < 0.0 else self.advice
