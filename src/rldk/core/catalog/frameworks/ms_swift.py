"""ms-swift, as JSON lines: TRL's names, a step written as `"1/547"` and a time written as `"5m 18s"`."""

from __future__ import annotations

from rldk.core.catalog.metric import Key, framework

__all__ = ["MS_SWIFT"]

MS_SWIFT = framework(
    "ms_swift", "ms-swift",
    signature=("global_step/max_steps", "remaining_time", "percentage"),
    json_lines=True,
    known=(
        "rollout_correction/* fipo/* sdar/* entropy/* teacher_kl rlsd_lambda record_acc completions/* profiling/* clip_ratio/* "
        "sampling/* train_speed* remaining_time elapsed_time percentage memory* cispo_clip_ratio"
    ),
    keys={
        "kl_mean": Key("kl", estimator="k3"),
        "entropy_mean": ("entropy/mean", "entropy"),
        "entropy_min": "entropy/min",
        "entropy_max": "entropy/max",
        "clip_frac": ("clip_ratio/region_mean", "clip_ratio", "cispo_clip_ratio"),
        "clip_frac_low": "clip_ratio/low_mean",
        "clip_frac_high": "clip_ratio/high_mean",
        "clip_frac_low_min": "clip_ratio/low_min",
        "clip_frac_high_max": "clip_ratio/high_max",
        "loss": "loss",
        "grad_norm": "grad_norm",
        "lr": "learning_rate",
        "reward_mean": "reward",
        "reward_std": "reward_std",
        "reward_zero_std_frac": "frac_reward_zero_std",
        "reward_function_mean/*": ("rewards/*/mean", "rewards/*"),
        "reward_function_std/*": "rewards/*/std",
        "rollout_length_mean": ("completions/mean_length", "completion_length"),
        "rollout_length_min": "completions/min_length",
        "rollout_length_max": "completions/max_length",
        "terminated_length_mean": "completions/mean_terminated_length",
        "terminated_length_min": "completions/min_terminated_length",
        "terminated_length_max": "completions/max_terminated_length",
        "truncated_frac": "completions/clipped_ratio",
        "turns_mean": "num_turns",
        "token_accuracy": "token_acc",
        "mismatch_kl": (Key("rollout_correction/kl", estimator="k1"), Key("rollout_correction/k3_kl", estimator="k3")),
        "mismatch_logp_diff": "sampling/sampling_logp_difference/mean",
        "sampling_ratio_mean": "rollout_correction/is_weight_mean",
        "mismatch_ess": "rollout_correction/ess",
        "mismatch_chi2": "rollout_correction/chi2_token",
        "mismatch_chi2_sequence": "rollout_correction/chi2_seq",
        "mismatch_clipped_frac": "rollout_correction/clipped_frac",
        "steps_per_second": "train_speed(iter/s)",
        "num_tokens": "num_tokens",
        "gpu_memory_gb": ("memory(GiB)", "memory/max_memory_allocated (GiB)"),
    },
)
