"""slime, as JSON lines: `train/pg_loss`, `train/ppo_kl`, `rollout/raw_reward`; train and rollout rows of one step are merged."""

from __future__ import annotations

from rldk.core.catalog.metric import Key, framework

__all__ = ["SLIME"]

SLIME = framework(
    "slime", "slime",
    signature=("rollout/log_probs", "rollout/ref_log_probs", "perf/rollout_time"),
    json_lines=True,
    keys={
        "kl_mean": Key("kl_loss", estimator="k3 unless set"),
        "kl_update": "ppo_kl",
        "entropy_mean": ("entropy_loss", "rollout/entropy"),
        "clip_frac": "pg_clipfrac",
        "ratio_mean": "ois",
        "loss": "loss",
        "policy_loss": "pg_loss",
        "grad_norm": "grad_norm",
        "value_grad_norm": "critic-train/grad_norm",
        "lr": "lr-pg_0",
        "reward_mean": "rollout/raw_reward",
        "advantage_mean": "rollout/advantages",
        "value_loss": "value_loss",
        "value_clip_frac": "value_clipfrac",
        "rollout_length_mean": "rollout/response_length",
        "truncated_frac": "rollout/truncated",
        "mismatch_logp_diff": "train_rollout_logprob_abs_diff",
        "step_time": "perf/step_time",
        "batch_size": "global_batch_size",
    },
)
