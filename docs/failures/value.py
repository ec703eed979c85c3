"""Failures of the value function."""

from __future__ import annotations

from failures.failure import Failure

__all__ = ["FAILURES"]

FAILURES = (
    Failure(
        "value_divergence", "The value loss runs away",
        "The value loss grows to many times its start, the explained variance falls, and advantages become noise.",
        ("value_loss", "explained_variance"),
        {
            "value_unexplained": "The value loss is in its range, but the values never learn to predict returns.",
            "value_frozen": "The weights of the value function do not change at all.",
        },
        ("explained_variance_negative",),
    ),
    Failure(
        "value_unexplained", "The values never predict the returns",
        "Long after the start the explained variance is still at zero or below.",
        ("explained_variance", "value_loss"),
        {
            "value_divergence": "The value loss grows to many times its start.",
            "value_frozen": "The weights of the value function do not change at all.",
            "dead_reward": "There is no variance to explain: all responses score the same.",
        },
        ("explained_variance_negative",), steps=500,
    ),
    Failure(
        "value_frozen", "The value function does not change",
        "The relative change of its weights is exactly 0 in every row, and the reward shows no trend.",
        ("weight_change_value", "reward"),
        {
            "policy_frozen": "The weights of the policy stand still.",
            "value_unexplained": "The weights move, but the values still predict nothing.",
        },
    ),
)  # fmt: skip
