"""Tinker cookbook, as JSON lines: `env/all/…`, `optim/…` and `progress/batch`; `test/env/all/…` is held-out data."""

from __future__ import annotations

from rldk.core.catalog.metric import framework

__all__ = ["TINKER"]

TINKER = framework(
    "tinker", "Tinker cookbook",
    signature=("progress/done_frac", "progress/batch", "env/all/total_episodes"),
    json_lines=True,
    keys={
        "kl_mean": "kl_policy_base",
        "entropy_mean": "optim/entropy",
        "lr": "optim/lr",
        "reward_mean": "env/all/reward/total",
        "reward_zero_std_frac": "env/all/by_group/frac_all_good + env/all/by_group/frac_all_bad",
        "rollout_length_mean": "env/all/ac_tokens_per_turn",
        "prompt_length_mean": "env/all/ob_tokens_per_turn",
        "turns_mean": "env/all/turns_per_episode",
        "mismatch_kl": ("optim/kl_sample_train_v2", "optim/kl_sample_train_v1"),
        "step_time": "time/total",
        "update_time": "time/train",
    },
)
