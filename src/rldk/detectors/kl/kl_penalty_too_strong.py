"""The KL penalty leaves no room to learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.core.stats.pairs import RollingPairs
from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.kl import adapts
from rldk.signals.reward import score_of

__all__ = ["KlPenaltyTooStrong"]

MEASURABLE = 0.02  # smallest KL at which penalty / KL gives the coefficient
PAIRS = 100  # rows of loss and KL from which the coefficient is taken
AT_ONCE = 3.0  # factor from one row to the next that is a new setting: controllers change by a few tenths
LATE = 40.0  # updates after which a reward that does not rise is held back by a coefficient of 2 as well
LINE = 0.9  # correlation of loss and KL from which the KL term is the loss


class KlPenaltyTooStrong(Detector):
    """The KL coefficient is many times what published recipes use.

    What it catches: a KL coefficient of 2 or more, as configured, as the penalty and the KL in the log imply, or as the loss
        and the KL of a group method do, or of 1 or more if it is constant. From 2 on it is critical if the reward does not
        rise: after ten rows if it is 5 or more, else after forty updates.
    Why it matters: the noise of the penalty drowns the reward, and each step away from the reference costs more than
        any reward can make up for.
    When it misfires: adaptive controllers reach 1 to 2 for a while; DPO's beta is not judged, because it does not weigh a
        penalty against a reward.
    What to do: lower the coefficient (`kl_coef`, `beta`) to 0.01 to 0.1.
    References: Ziegler et al. 2019 (0.03 to 0.2); TRL's defaults 0.05 (PPO) and 0 to 0.04 (GRPO).
    """

    __slots__ = ("_before", "_driven", "_pairs", "strong")
    type: ClassVar[str] = "kl_penalty_too_strong"
    family: ClassVar[str] = "kl_schedule"
    needs: ClassVar = (("reward_mean",), ("kl_coef", "kl_penalty_reward", "kl_mean"))
    panels: ClassVar = ("kl", "kl_coef", "reward")
    reads: ClassVar = ("loss", "value_loss", "reward_std")
    advice: ClassVar[str] = "Lower the KL coefficient (`kl_coef`, `beta`) to 0.01 to 0.1."
    clear: ClassVar[int] = 5
    clauses: ClassVar = {
        "holds_back": Clause(
            "the KL coefficient is 5 or more, or 2 or more after forty updates, and the reward does not rise", "critical",
            "recipes use 0 to 0.5; at 5 a KL of 0.2 nats costs as much as a correct answer earns", persist=10, min_rows=4,
        ),
        "strong": Clause(
            "the KL coefficient is 2 or more", "warning", "recipes use 0 to 0.5", persist=2, min_rows=1,
        ),
        "set_high": Clause(
            "the KL coefficient is constant, and 1 or more", "warning",
            "recipes use 0 to 0.5; no sound run, own or public, has 0.5 or more", persist=2, min_rows=1,
        ),
        "driven_up": Clause(
            "the KL coefficient rose step by step to 2 or more", "warning",
            "recipes use 0 to 0.5; a setting would change at once, so that a controller has done it", persist=2, min_rows=1,
        ),
    }  # fmt: skip
    settings: ClassVar = {"strong": Setting(2.0, "KL coefficient that is too strong", min=0.0)}
    strong: float
    _pairs: RollingPairs
    _before: float
    _driven: bool

    def reset(self) -> None:
        super().reset()
        self._before, self._driven = 0.0, False
        self._pairs = RollingPairs(PAIRS)

    def find(self, view: View) -> Sequence[Finding]:
        coef = self._coefficient(view) if score_of(view).n else 0.0
        is_set = view.get("kl_coef").n > 0 and not adapts(view)  # what the penalty or the loss implies is less sure
        if not coef >= (0.5 * self.strong if is_set else self.strong):
            return ()
        message = f"The KL coefficient is {coef:.3g}; recipes use 0 to 0.5."
        clause = "set_high" if coef < self.strong else "driven_up" if self._driven else "strong"
        found = [Finding("", coef, self.strong, message, {"coef": coef}, clause=clause)]
        rows = 10 if coef >= 2.5 * self.strong else view.rows(LATE, 12)
        if coef >= self.strong and score_of(view).n >= rows and not view.reward.improves(score_of(view)):
            text = f"{message[:-1]}, and the reward does not rise."
            found.append(Finding("", coef, self.strong, text, {"coef": coef}, clause="holds_back"))
        return found

    def _coefficient(self, view: View) -> float:
        coef = view.get("kl_coef")
        if coef.n:
            before, self._before = self._before, coef.last
            if before < self.strong <= coef.last:  # also if it has been so before and fell again
                self._driven = coef.last < AT_ONCE * before
            return coef.level
        penalty, kl = view.get("kl_penalty_reward"), view.get("kl_mean")
        if not penalty.n:
            return self._from_loss(view)
        if penalty.n < 3 or penalty.index != kl.index or not abs(kl.last) > MEASURABLE:
            return 0.0
        return -penalty.last / kl.last

    def _from_loss(self, view: View) -> float:
        """The coefficient of a group method: its advantages add up to 0, so that its loss is the coefficient times the KL."""
        kl, loss = view.get("kl_mean"), view.get("loss")
        if kl.index != view.index or loss.index != view.index or view.get("value_loss").n or not view.get("reward_std").n:
            return 0.0
        self._pairs.update(kl.last, loss.last)
        line = self._pairs
        return line.slope if line.count >= 8 and line.correlation > LINE else 0.0
