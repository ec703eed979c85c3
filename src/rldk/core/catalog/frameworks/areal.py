"""AReaL, as JSON lines: `ppo_actor/task_reward/avg`, `ppo_actor/update/…`; the suffix says which statistic it is."""

from __future__ import annotations

from rldk.core.catalog.metric import framework

__all__ = ["AREAL"]

AREAL = framework(
    "areal", "AReaL",
    json_lines=True,
    known=(
        "timeperf/* ppo_actor/* ppo_critic/* grpo_actor/* */version_stats/* rollout/* eval-rollout/* time_perf/* "
        "correct_n_seqs incorrect_n_seqs eps_clip c_clip use_dual_clip"
    ),
    keys={
        "kl_update": "ppo_actor/update/approx_kl",
        "kl_penalty_reward": "ppo_actor/kl_rewards",
        "entropy_mean": "ppo_actor/update/entropy",
        "clip_frac": "ppo_actor/update/clip_ratio",
        "clip_frac_dual": "ppo_actor/update/dual_clip_ratio",
        "ratio_mean": "ppo_actor/update/importance_weight",
        "policy_loss": "ppo_actor/update/actor_loss",
        "policy_grad_norm": "ppo_actor/update/grad_norm",
        "update_applied": "ppo_actor/update/update_successful",
        "policy_lr": "ppo_actor/update/lr",
        "reward_mean": "ppo_actor/task_reward",
        "reward_after_kl": "ppo_actor/final_reward",
        "reward_min": "ppo_actor/task_reward/min",
        "reward_max": "ppo_actor/task_reward/max",
        "advantage_mean": "ppo_actor/advantages",
        "advantage_min": "ppo_actor/advantages/min",
        "advantage_max": "ppo_actor/advantages/max",
        "rollout_length_mean": ("ppo_actor/seq_len/avg - ppo_actor/prompt_len/avg", "ppo_actor/seq_len"),
        "rollout_length_min": "ppo_actor/seq_len/min",
        "rollout_length_max": "ppo_actor/seq_len/max",
        "truncated_frac": "ppo_actor/no_eos_ratios",
        "prompt_length_mean": "ppo_actor/prompt_len",
        "mismatch_kl": "ppo_actor/update/behave_approx_kl",
        "sampling_ratio_mean": "ppo_actor/update/behave_imp_weight",
        "mismatch_masked_frac": ("rs_filtered_fraction", "ppo_actor/update/rs_filtered_fraction"),
        "staleness_mean": (
            "version_stats/sample_staleness_theta_avg", "*/version_stats/sample_staleness_theta_avg",
            "version_stats/sample_staleness_proximal_avg", "*/version_stats/sample_staleness_proximal_avg",
        ),
        "staleness_max": (
            "version_stats/sample_staleness_theta_max", "*/version_stats/sample_staleness_theta_max",
            "version_stats/sample_staleness_proximal_max", "*/version_stats/sample_staleness_proximal_max",
        ),
    },
)
