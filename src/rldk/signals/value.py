"""The value function beside the reward that it predicts."""

from __future__ import annotations

from rldk.signals.channels import works
from rldk.signals.reward import score_of
from rldk.signals.view import View, once_per_event

__all__ = ["reward_outgrew_values", "variance_growth"]


@once_per_event
def reward_outgrew_values(view: View) -> bool:
    """Whether the growth of the reward explains the value loss: a value function that has not followed it at all has such a loss.

    It only counts while the reward thrives and nothing is damaged.
    """
    score, loss = score_of(view), view.get("value_loss")
    rise = score.level - score.base
    return rise > 0.0 and loss.level < rise * rise and works(view)


def variance_growth(view: View) -> float:
    """How many times larger the variance of the rewards is than at the start, at least 1: the loss of a constant value grows so.

    It is known from the spread between responses, or of rewards of 0 and 1 from their mean p: its variance is p (1 - p).
    """
    spread, score = view.get("reward_std"), score_of(view)
    if spread.ready:
        grown = spread.level / spread.base if spread.base > 0.0 else 1.0
        return max(grown * grown, 1.0)
    if not score.ready or score.low < 0.0 or score.high > 1.0 or not 0.0 < score.start < 1.0:
        return 1.0
    return max(score.level * (1.0 - score.level) / (score.start * (1.0 - score.start)), 1.0)
