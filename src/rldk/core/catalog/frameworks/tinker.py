"""Tinker cookbook, as JSON lines: `env/all/…`, `optim/…` and `progress/batch`; `test/env/all/…` is held-out data."""

from __future__ import annotations

from rldk.core.catalog.metric import Key, framework

__all__ = ["TINKER"]

TINKER = framework(
    "tinker", "Tinker cookbook",
    signature=("progress/done_frac", "progress/batch", "env/all/total_episodes"),
    json_lines=True,
    known=(
        "time/* progress/* env/* by_group/* train/* sampling_client/* training_client/* optim/* stop/* test/* eval/* kl_* "
        "teacher_kl rollout_summaries/* error/*"
    ),
    keys={
        "kl_mean": "kl_policy_base",
        "entropy_mean": "optim/entropy",
        "grad_norm": ("optim/unclipped_grad_l2:mean", "unclipped_grad_l2:mean", "optim/grad_norm:mean", "grad_norm:mean"),
        "lr": "optim/lr",
        "reward_mean": "env/all/reward/total",
        "reward_zero_std_frac": (
            "env/all/by_group/frac_all_good + env/all/by_group/frac_all_bad", "by_group/frac_all_good + by_group/frac_all_bad",
            Key("env/all/by_group/frac_mixed", "complement"), Key("by_group/frac_mixed", "complement"),
        ),
        "groups_all_good_frac": ("env/all/by_group/frac_all_good", "by_group/frac_all_good"),
        "groups_all_bad_frac": ("env/all/by_group/frac_all_bad", "by_group/frac_all_bad"),
        "reward_function_mean/*": ("env/all/reward/*",),
        "accuracy": "env/all/correct",
        "rollout_length_mean": ("env/all/ac_tokens_per_turn", "ac_tokens_per_turn"),
        "truncated_frac": ("env/all/stop/length", "stop/length"),
        "prompt_length_mean": "env/all/ob_tokens_per_turn",
        "turns_mean": ("env/all/turns_per_episode", "turns_per_episode"),
        "malformed_frac": Key("env/all/format", "complement"),
        "mismatch_kl": ("optim/kl_sample_train_v2", "optim/kl_sample_train_v1"),
        "staleness_mean": "training_client/step - sampling_client/step_mean",
        "staleness_max": "training_client/step - sampling_client/step_min",
        "step_time": "time/total",
        "update_time": "time/train",
    },
)
