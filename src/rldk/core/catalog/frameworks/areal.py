"""AReaL: `ppo_actor/task_reward/avg`, `ppo_actor/update/…`; the suffix says which statistic it is.

Its `StatsLogger` writes to TensorBoard and W&B, and prints tables (`formats/console_tables.py`). Before 1.0 the actor was called
`grpo_actor` in most examples, and what is measured in the update had no `update/` before it.
"""

from __future__ import annotations

from rldk.core.catalog.metric import framework

__all__ = ["AREAL"]

_ACTORS = ("ppo_actor", "grpo_actor")


def _batch(*names: str) -> tuple[str, ...]:
    """The keys of something that is measured in a batch."""
    return tuple(f"{actor}/{name}" for actor in _ACTORS for name in names)


def _update(*names: str) -> tuple[str, ...]:
    """The keys of something that is measured in the update."""
    return tuple(f"{actor}/{part}{name}" for part in ("update/", "") for actor in _ACTORS for name in names)


AREAL = framework(
    "areal", "AReaL",
    json_lines=True,
    known=(
        "timeperf/* ppo_actor/* ppo_critic/* grpo_actor/* */version_stats/* rollout/* eval-rollout/* time_perf/* "
        "correct_n_seqs incorrect_n_seqs eps_clip c_clip use_dual_clip"
    ),
    keys={
        "kl_update": _update("approx_kl"),
        "kl_penalty_reward": _batch("kl_rewards"),
        "entropy_mean": _update("entropy"),
        "clip_frac": _update("clip_ratio", "actor_clip_ratio"),
        "clip_frac_dual": _update("dual_clip_ratio"),
        "ratio_mean": _update("importance_weight"),
        "policy_loss": _update("actor_loss"),
        "policy_grad_norm": _update("grad_norm"),
        "update_applied": _update("update_successful"),
        "policy_lr": _update("lr"),
        "reward_mean": (*_batch("task_reward"), "rollout/reward"),
        "reward_after_kl": _batch("final_reward"),
        "reward_min": _batch("task_reward/min"),
        "reward_max": _batch("task_reward/max"),
        "advantage_mean": _batch("advantages"),
        "advantage_min": _batch("advantages/min"),
        "advantage_max": _batch("advantages/max"),
        "value_loss": ("ppo_critic/update/value_loss", "ppo_critic/value_loss"),
        "rollout_length_mean": (*(f"{actor}/seq_len/avg - {actor}/prompt_len/avg" for actor in _ACTORS), *_batch("seq_len")),
        "rollout_length_min": _batch("seq_len/min"),
        "rollout_length_max": _batch("seq_len/max"),
        "truncated_frac": _batch("no_eos_ratios"),
        "prompt_length_mean": _batch("prompt_len"),
        "mismatch_kl": _update("behave_approx_kl"),
        "sampling_ratio_mean": _update("behave_imp_weight"),
        "mismatch_masked_frac": ("rs_filtered_fraction", *_update("rs_filtered_fraction")),
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
