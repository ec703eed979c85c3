"""slime, as JSON lines: `train/pg_loss`, `train/ppo_kl`, `rollout/raw_reward`; train and rollout rows of one step are merged."""

from __future__ import annotations

from rldk.core.catalog.metric import Key, framework

__all__ = ["SLIME"]

SLIME = framework(
    "slime", "slime",
    signature=("rollout/log_probs", "rollout/ref_log_probs", "perf/rollout_time"),
    json_lines=True,
    known=(
        "perf/* rollout/* passrate/* train/mis_* mis_* tis_abs opsm_clipfrac train_rollout_* multi_turn/* step train/step "
        "lr-pg_* value_* critic-train/* eval/* loss_mask_* global_batch_size"
    ),
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
        "reward_mean": ("rollout/raw_reward", "rollout/rewards"),
        "groups_all_good_frac": "rollout/zero_std/all_one_percentage",
        "groups_all_bad_frac": "rollout/zero_std/all_zero_percentage",
        "pass_at_k": "passrate/pass@*",
        "advantage_mean": "rollout/advantages",
        "value_loss": "value_loss",
        "value_clip_frac": "value_clipfrac",
        "rollout_length_mean": ("rollout/response_length", "rollout/response_len/mean", "rollout/response_lengths"),
        "rollout_length_min": "rollout/response_len/min",
        "rollout_length_max": "rollout/response_len/max",
        "truncated_frac": ("rollout/truncated", "rollout/truncated_ratio"),
        "repetitive_responses_frac": "rollout/repetition_frac",
        "mismatch_logp_diff": "train_rollout_logprob_abs_diff",
        "sampling_ratio_mean": "tis",
        "mismatch_clipped_frac": "tis_clipfrac",
        "step_time": "perf/step_time",
        "batch_size": "global_batch_size",
    },
)
