"""The KL penalty is missing, or pays for leaving the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View

__all__ = ["KlPenaltyOff"]

HELD = 5  # rows with a penalty after which its loss counts as a change
AT_ONCE = 0.2  # share of its highest value that the coefficient must have had just before
MEASURABLE = 0.3  # smallest KL at which penalty / KL gives the coefficient


class KlPenaltyOff(Detector):
    """The KL coefficient is negative or 0, or dropped to 0 during the run.

    What it catches: a coefficient below 0, as configured or as the penalty and the KL in the log imply; one that falls from a
        fifth or more of its highest value to 0 within one row. A coefficient that is 0 from the start is a note.
    Why it matters: a negative coefficient pays the policy for leaving its reference, and it will. Without the penalty
        nothing keeps the policy from exploiting errors of the reward.
    When it misfires: training without a penalty is a choice (TRL's default for GRPO), hence only a note. A penalty that is
        reduced step by step is not judged. Where the KL is not measured, as in GRPO with `beta=0`, only a coefficient that
        drops is found.
    What to do: set the coefficient (`kl_coef`, `beta`) to 0.01 to 0.1, or back to what it was. If 0 is intended, set a limit
        on the KL yourself and watch held-out quality.
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
            "the KL coefficient is negative", "critical", "definition: the penalty has the wrong sign", persist=1, min_rows=1,
        ),
        "pays": Clause(
            "the KL term of the reward is positive while the KL is positive", "critical",
            "definition: the penalty is minus the coefficient times the KL", persist=5, min_rows=3,
        ),
        "lost": Clause(
            "the KL coefficient dropped to 0 within one row", "warning", "schedules reduce a coefficient step by step",
            persist=2, min_rows=1,
        ),
        "chosen": Clause("the KL coefficient is 0", NOTE, "a choice, and TRL's default for GRPO"),
    }  # fmt: skip
    settings: ClassVar = {"nothing": Setting(1e-4, "coefficient below which the penalty counts as off", min=0.0)}
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
            message = f"The KL coefficient dropped from {self._lost:.3g} to {coef:.3g} within one row."
            return (Finding("", coef, self._lost, message, {"coef": coef, "coef_before": self._lost}, clause="lost"),)
        message = f"The KL coefficient is {coef:.3g}: nothing keeps the policy near its reference. This may be intended."
        return (Finding("", coef, self.nothing, message, {"coef": coef}, clause="chosen"),)

    def _implied(self, view: View) -> Sequence[Finding]:
        """Where no coefficient is logged, the penalty divided by the KL of the row gives it."""
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
            return f"Set the KL coefficient back to {before:.3g}, unless this was intended."
        return "Make the KL coefficient (`kl_coef`, `beta`) positive: 0.01 to 0.1." if finding.value < 0.0 else self.advice
