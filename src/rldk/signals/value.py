"""The value function beside the reward that it predicts."""

from __future__ import annotations

from rldk.signals.channels import works
from rldk.signals.reward import score_of
from rldk.signals.view import View, once_per_event

__all__ = ["reward_outgrew_values"]


@once_per_event
def reward_outgrew_values(view: View) -> bool:
    """Whether the growth of the reward explains the value loss: a value function that has not followed it at all has such a loss.

    It only counts while the reward thrives and nothing is damaged.
    """
    score, loss = score_of(view), view.get("value_loss")
    rise = score.level - score.base
    return rise > 0.0 and loss.level < rise * rise and works(view)
