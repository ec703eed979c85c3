"""Nothing holds the policy near its reference."""

from __future__ import annotations

from typing import ClassVar

from rldk.detectors.base import Detector, Finding, Setting, View
from rldk.detectors.kl.units import USUAL_SEQUENCE, USUAL_TOKEN, in_numbers, unit_of
from rldk.detectors.reward.course import reward_thrives

__all__ = ["KlPenaltyOff"]

HELD = 5  # rows with a penalty after which losing it is a change
AT_ONCE = 0.2  # share of its highest that the coefficient had right before
AT_HIGH = 0.9  # share of its highest at which a KL has not come to rest
THRIVING = 2.0  # how much further the policy of a reward that thrives may go
LONG, SHORT = 0.1, 0.5  # nats a token of responses so long, or so short, that the usual a response says little


class KlPenaltyOff(Detector):
    """The KL coefficient is 0, and it shows: the penalty was lost on the way, or the policy leaves its reference.

    What it catches: a coefficient that falls from a fifth or more of its highest to nothing (below 1e-4) at once, and stays
        there. Or a coefficient that is nothing, with a KL at its highest so far, five times its start, and beyond what runs
        reach that are held: 0.3 nats a token, or 15 a response (half a nat a token of responses under 30 tokens, a tenth of
        long ones); twice that while the reward thrives. It is never critical: what is damaged is told by others.
    Why it matters: without the penalty the policy goes wherever the reward is, also where the reward is wrong, and nothing
        brings it back.
    When it misfires: training without a penalty is a choice, and TRL's GRPO makes it by default; as such it is never
        raised. A penalty that was faded out step by step is no loss. Where the KL is not measured, which is so in GRPO
        with `beta=0`, only the loss of a coefficient is seen.
    What to do: set the coefficient (`kl_coef`, `beta`) back to what it was, or to 0.01 to 0.1; where it is meant, limit the
        KL yourself and watch held-out quality.
    References: Gao et al. 2023, Scaling Laws for Reward Model Overoptimization; Ziegler et al. 2019.
    """

    __slots__ = ("_before", "_highest", "_lost", "_on", "growth", "nothing", "sequence", "token")
    type: ClassVar[str] = "kl_penalty_off"
    tracker: ClassVar[str] = "kl_schedule"
    needs: ClassVar = (("kl_coef",),)
    reads: ClassVar = ("kl_mean", "reward_mean", "rollout_length_mean", "target_kl")
    advice: ClassVar[str] = "Set the KL coefficient (`kl_coef`, `beta`) to 0.01 to 0.1, or limit the KL yourself."
    settings: ClassVar = {
        "nothing": Setting(1e-4, "coefficient below which there is no penalty to speak of", least=0.0),
        "token": Setting(USUAL_TOKEN, "nats a token beyond which a policy that nothing holds is a warning", least=0.0),
        "sequence": Setting(USUAL_SEQUENCE, "nats a response beyond which it is", least=0.0),
        "growth": Setting(5.0, "how many times its start the KL must be", least=1.0),
    }
    nothing: float
    token: float
    sequence: float
    growth: float
    _on: int
    _before: float
    _highest: float
    _lost: float

    def reset(self) -> None:
        super().reset()
        self._on = 0
        self._before = self._highest = self._lost = 0.0

    def check(self, view: View) -> Finding | None:
        coef = view.get("kl_coef").last
        if coef >= self.nothing:
            self._on += 1
            self._before, self._lost = coef, 0.0
            self._highest = max(self._highest, coef)
            return None
        if not coef >= 0.0:
            return None
        if self._on >= HELD and self._before > AT_ONCE * self._highest:
            self._lost = self._before
        self._before = 0.0
        return self._gone(coef) if self._lost else self._adrift(view, coef)

    def _gone(self, coef: float) -> Finding:
        message = f"The KL penalty was lost: its coefficient fell from {self._lost:.3g} to {coef:.3g} at once."
        return Finding("warning", coef, self._lost, message, {"coef": coef, "coef_before": self._lost})

    def _adrift(self, view: View, coef: float) -> Finding | None:
        kl = view.get("kl_mean")
        level = kl.level
        if not (kl.ready and level > min(self.token, self.sequence)):
            return None
        unit = unit_of(view)
        limit = self._limit(view, unit)
        climbs = level >= AT_HIGH * kl.high and level > self.growth * max(kl.start, 0.0)
        if not level > limit or not (climbs or self.raised):
            return None
        where = f"KL from the reference is {level:.3g} {in_numbers(unit)}, from {kl.first:.3g} at the start"
        message = f"{where}, and with a KL coefficient of {coef:.3g} nothing holds it."
        return Finding("warning", level, limit, message, {"kl": level, "kl_start": kl.start, "coef": coef})

    def _limit(self, view: View, unit: str) -> float:
        """How far a policy goes that is held, by the unit of the KL; a KL of no known unit is taken for one by response."""
        limit = self.token
        if unit != "token":
            limit, length = self.sequence, view.get("rollout_length_mean").level
            if length > 0.0 and unit:
                limit = min(max(limit, LONG * length), SHORT * length)
        return THRIVING * limit if reward_thrives(view) else limit

    def advice_for(self, view: View, finding: Finding) -> str:
        before = finding.evidence.get("coef_before")
        return self.advice if before is None else f"Set the KL coefficient back to {before:.3g}, unless this was meant."
