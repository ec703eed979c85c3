"""NeMo-RL, as JSON lines: `reward`, `kl_penalty`, `probs_ratio` and others, with or without `train/` before them."""

from __future__ import annotations

from rldk.core.catalog.metric import Key, framework

__all__ = ["NEMO_RL"]

NEMO_RL = framework(
    "nemo_rl", "NeMo-RL",
    signature=("num_valid_samples", "global_valid_seqs"),
    json_lines=True,
    known=(
        "timing/* performance/* ray/* gpu_monitoring/* r3/* advantages/* baseline_reward/* probs_ratio_clamped* "
        "*_seq_mult_prob_error js_divergence_error policy_kl_error num_* *_per_sample *_rate filtered_reward* reward_* "
        "avg_trajectory_age global_valid_* generation_metrics/* vllm_* sequence_* valid_* draft_* critic/* histogram/* "
        "dynamic_sampling_* mean_prompt_length total_num_tokens sampling_importance_* shared_prefix/* rollout/* curr_lr lr_*"
    ),
    keys={
        "kl_mean": Key("kl_penalty", estimator="k3"),
        "entropy_mean": Key("approx_entropy", estimator="sampled"),
        "routing_fallback_frac": "r3/routed_experts_fallback_token_route_fraction",
        "ratio_mean": "probs_ratio",
        "ratio_min": "probs_ratio_min",
        "ratio_max": "probs_ratio_max",
        "loss": "loss",
        "grad_norm": "grad_norm",
        "value_grad_norm": "critic/grad_norm",
        "lr": "lr",
        "value_lr": "critic/lr",
        "weight_decay": "wd",
        "reward_mean": "reward",
        "reward_zero_std_frac": Key("baseline_reward/pct_0 + baseline_reward/pct_1", "percent"),
        "groups_all_good_frac": Key("baseline_reward/pct_1", "percent"),
        "groups_all_bad_frac": Key("baseline_reward/pct_0", "percent"),
        "tool_failure_rate": "invalid_tool_call_rate",
        "advantage_mean": "advantages/mean",
        "advantage_min": "advantages/min",
        "advantage_max": "advantages/max",
        "value_loss": "critic/loss",
        "value_mean": "critic/values_mean",
        "value_min": "critic/values_min",
        "value_max": "critic/values_max",
        "value_clip_frac": "critic/vf_clipfrac",
        "explained_variance": "critic/explained_var",
        "return_mean": "critic/returns_mean",
        "rollout_length_mean": ("mean_gen_tokens_per_sample", "Mean Generation Length"),
        "truncated_frac": "truncation_rate",
        "eos_frac": "natural_termination_rate",
        "total_length_mean": "mean_total_tokens_per_sample",
        "turns_mean": "avg_turns_per_sample",
        "turns_max": "max_turns_per_sample",
        "max_turns_frac": "max_turns_reached_rate",
        "malformed_frac": "malformed_thinking_rate",
        "mismatch_kl": ("gen_kl_error", "Generation KL Error"),
        "mismatch_ratio": "token_mult_prob_error",
        "mismatch_ratio_max": "max_seq_mult_prob_error",
        "sampling_ratio_mean": "sampling_importance_ratio",
        "mismatch_masked_frac": "is_oob_ratio",
        "staleness_mean": ("avg_trajectory_age", "staleness/mean"),
        "staleness_max": "staleness/max",
        "step_time": ("total_step_time", "Total step time"),
        "step_tokens": "global_valid_toks",
    },
)
