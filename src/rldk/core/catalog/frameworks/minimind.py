"""MiniMind: console lines `Epoch:[1/1](100/9751), Reward: 0.1, …` (`formats/epoch_lines.py`), in all their generations."""

from __future__ import annotations

from rldk.core.catalog.metric import framework

__all__ = ["MINIMIND"]

MINIMIND = framework(
    "minimind", "MiniMind",
    keys={
        "kl_mean": ("kl_ref", "KL_ref", "KL_Ref"),
        "kl_update": ("approx_kl", "kl", "Approx KL", "KL"),
        "clip_frac": "clipfrac",
        "policy_loss": ("actor_loss", "policy_loss"),
        "aux_loss": "aux_loss",
        "dpo_loss": "dpo_loss",
        "lr": "learning_rate",
        "policy_lr": "actor_lr",
        "value_lr": "critic_lr",
        "reward_mean": ("reward", "Reward"),
        "reward_group_std": "group_reward_std",
        "advantage_mean": "advantages_mean",
        "advantage_std": "advantages_std",
        "value_loss": "critic_loss",
        "rollout_length_mean": ("avg_response_len", "Avg Response Len", "Avg Len"),
    },
)
