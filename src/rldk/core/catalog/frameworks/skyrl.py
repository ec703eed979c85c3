"""SkyRL: W&B, MLflow, SwanLab, TensorBoard or the console; `policy/…` of the update, `loss/…` and `reward/…` of the batch."""

from __future__ import annotations

from rldk.core.catalog.metric import framework

__all__ = ["SKYRL"]

SKYRL = framework(
    "skyrl", "SkyRL",
    signature=("reward/mean_positive_reward", "generate/batch_num_seq", "trainer/global_step", "trainer/epoch"),
    json_lines=True,
    known=(
        "timing/* generate/* environment/* policy/* critic/* loss/* reward/mean_positive_reward "
        "reward/num_zero_variance_filtered async/* trainer/* eval/*/mean_positive_reward eval/*/generate/*"
    ),
    keys={
        "kl_mean": ("policy/policy_kl", "loss/avg_kl"),
        "kl_max": "loss/avg_kl_max",
        "kl_coef": "loss/kl_loss_coef",
        "entropy_mean": "policy/policy_entropy",
        "clip_frac": ("policy/ppo_clip_ratio", "policy/loss_metrics/clip_ratio"),
        "loss": "policy/final_loss",
        "policy_loss": "policy/policy_loss",
        "policy_grad_norm": ("policy/raw_grad_norm", "policy/grad_norm"),
        "value_grad_norm": ("critic/raw_grad_norm", "critic/critic_grad_norm"),
        "policy_lr": "policy/policy_lr",
        "value_lr": "critic/critic_lr",
        "reward_mean": "reward/avg_raw_reward",
        "reward_after_kl": "loss/avg_final_rewards",
        "pass_at_k": ("reward/avg_pass_at_*", "pass_at_*"),
        "advantage_mean": "loss/avg_raw_advantages",
        "value_loss": "critic/critic_loss",
        "value_mean": "critic/values_mean",
        "value_clip_frac": "critic/values_clipfrac",
        "rollout_length_mean": ("generate/avg_num_tokens", "policy/response_length"),
        "rollout_length_std": "generate/std_num_tokens",
        "rollout_length_min": "generate/min_num_tokens",
        "rollout_length_max": "generate/max_num_tokens",
        "mismatch_logp_diff": "policy/rollout_train_logprobs_abs_diff_mean",
        "mismatch_logp_diff_max": "policy/rollout_train_logprobs_abs_diff_max",
        "sampling_ratio_mean": ("policy/is_ratio_mean", "policy/loss_metrics/is_ratio_mean"),
        "sampling_ratio_min": ("policy/is_ratio_min", "policy/loss_metrics/is_ratio_min"),
        "sampling_ratio_max": ("policy/is_ratio_max", "policy/loss_metrics/is_ratio_max"),
        "sampling_ratio_std": ("policy/is_ratio_std", "policy/loss_metrics/is_ratio_std"),
        "mismatch_clipped_frac": (
            "policy/tis_token_clip_high_ratio", "policy/loss_metrics/tis_token_clip_high_ratio", "policy/tis_seq_clip_high_ratio",
        ),
        "mismatch_masked_sequence_frac": ("policy/geo_sequence_mask_masked_ratio", "policy/product_sequence_mask_masked_ratio"),
        "staleness_mean": "async/staleness_mean",
        "staleness_max": "async/staleness_max",
        "stale_frac": "async/staleness_ratio",
        "dropped_rollouts": "async/num_groups_dropped",
        "step_time": "timing/step",
        "generation_time": "timing/generate",
        "update_time": "timing/policy_train",
    },
)
