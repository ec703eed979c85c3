"""The value function diverges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View
from rldk.signals.channels import CHANNEL_METRICS
from rldk.signals.optimizer import VALUE_RATES, rate_in_brackets
from rldk.signals.value import reward_outgrew_values, variance_growth

__all__ = ["ValueDivergence"]

ABSURD = 1e10  # value loss
EXPLAINED = 0.2  # share of the variance of returns from which values count as following them


class ValueDivergence(Detector):
    """The value loss has grown to many times its start and stays there.

    What it catches: a value loss whose median over five rows is five times its start (more if the spread of rewards has
        grown, since the loss grows with its square). Critical at fifty times, or at ten times with a second sign: a negative
        explained variance, a value gradient norm that grew fivefold, or a reward that lost half of its gain.
    Why it matters: the loss is largest before the value function has learnt anything. Above that level it predicts
        worse than a guess, and its errors become the advantages that the policy is trained on.
    When it misfires: if all rewards are zero at the start, so is the loss; the loss must therefore also exceed twice the
        squared spread of rewards, where that is known. Where the explained variance is logged and has not halved, the loss
        grew because the returns did, and is not judged. A change in the scale of the reward looks the same. A loss below the
        squared rise of the reward is only a note while the reward thrives and nothing is damaged: the values lag behind.
    What to do: lower the value function's learning rate, clip its loss and gradients, normalise rewards or returns, and
        check the mask of the value loss.
    References: Engstrom et al. 2020, Implementation Matters in Deep Policy Gradients; Huang et al. 2022, The 37
        Implementation Details of Proximal Policy Optimization.
    """

    __slots__ = ("factor", "ruin", "worse")
    type: ClassVar[str] = "value_divergence"
    family: ClassVar[str] = "value"
    needs: ClassVar = (("value_loss",),)
    panels: ClassVar = ("value_loss", "explained_variance", "value")
    reads: ClassVar = (
        "reward_std", "explained_variance", "value_grad_norm", "reward_mean", "accuracy", *CHANNEL_METRICS, *VALUE_RATES,
    )  # fmt: skip
    advice: ClassVar[str] = "Lower the value function's learning rate, clip its loss and gradients, and normalise rewards."
    clear: ClassVar[int] = 10
    clauses: ClassVar = {
        "absurd": Clause(
            "the value loss is above 1e10, and a million times its start", "critical",
            "definition: values that err by a hundred thousand; one row of it is enough",
        ),
        "ruined": Clause(
            "the value loss is fifty times its start", "critical",
            "a judgement, tested on simulated runs; 95 % of the sound runs of the tune split grow by up to 1.6 times, "
            "the others only where the reward was changed", persist=3, min_rows=3,
        ),
        "grown_with_damage": Clause(
            "the value loss is ten times its start, and another sign of the value function confirms it", "critical",
            "corroboration by explained variance, gradient or reward", persist=3, min_rows=3,
        ),
        "grown": Clause(
            "the value loss is five times its start", "warning",
            "tune split: 95 % of 44 sound runs stay below 1.6 times their start; in the others the reward was changed",
            persist=5, min_rows=5,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "factor": Setting(5.0, "times its start at which it is a warning", min=1.0),
        "worse": Setting(10.0, "times its start at which a second sign makes it critical", min=1.0),
        "ruin": Setting(50.0, "times its start at which it is critical", min=1.0),
    }
    factor: float
    worse: float
    ruin: float

    def find(self, view: View) -> Sequence[Finding]:
        loss = view.get("value_loss")
        if loss.last > max(ABSURD, 1e6 * loss.first) and loss.index == view.index and not loss.nonfinite_run:
            message = f"Value loss is {loss.last:.3g}; in the first row it was {loss.first:.3g}."
            return (Finding("", loss.last, ABSURD, message, {"value_loss": loss.last}, True, "absurd"),)
        level = loss.level
        if not level > self.factor * loss.base or loss.n < 10:
            return ()
        if view.reward.was_changed(view.index):
            return ()  # the reward itself has changed: the value function must learn it again
        normal = max(loss.start, loss.base)
        if not level > self.factor * normal > 0.0 or self._follows(view):
            return ()
        spread = view.get("reward_std")
        if spread.ready and level < 2.0 * spread.level * spread.level:
            return ()
        normal *= variance_growth(view)
        limit = self.factor * normal
        if not level > limit:
            return ()
        times = level / normal
        signs = self._signs(view) if times > self.worse else []
        lags = reward_outgrew_values(view)
        message = f"Value loss is {level:.3g}, {times:.3g} times what it was at the start" + (
            ", since the reward grows faster than the values follow." if lags else f", and {', '.join(signs)}." if signs else "."
        )
        evidence = {"value_loss": level, "value_loss_start": normal, "signs": float(len(signs))}
        if lags:
            return (Finding(NOTE, level, limit, message, evidence, clause="grown"),)
        worse = ["ruined"] if times > self.ruin else ["grown_with_damage"] if signs else []
        return [Finding("", level, limit, message, evidence, clause=clause) for clause in ("grown", *worse)]

    @staticmethod
    def _follows(view: View) -> bool:
        """Whether the values explain the returns as well as before: then the loss grew because the returns did."""
        explained = view.get("explained_variance")
        return explained.ready and explained.level > max(EXPLAINED, 0.5 * explained.base)

    @staticmethod
    def _signs(view: View) -> list[str]:
        signs = []
        explained = view.get("explained_variance")
        if explained.ready and explained.level < 0.0:
            signs.append(f"the explained variance is {explained.level:.3g}")
        grad = view.get("value_grad_norm")
        if grad.ready and grad.level > 5.0 * max(grad.start, grad.base) > 0.0:
            signs.append(f"the value gradient norm is {grad.level:.3g}")
        reward = view.get("reward_mean")
        if reward.n >= 10 and reward.high - reward.level > max(0.5 * (reward.high - reward.low), 3.0 * reward.scale):
            signs.append(f"reward fell from {reward.high:.3g} to {reward.level:.3g}")
        return signs

    def advice_for(self, view: View, finding: Finding) -> str:
        rate = rate_in_brackets(view.first(*VALUE_RATES))
        return f"Lower the value function's learning rate{rate}, clip its loss and gradients, and normalise rewards."
