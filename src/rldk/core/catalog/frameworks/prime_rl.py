"""prime-rl, as JSON lines: the trainer's `loss/mean`, `mismatch_kl/…`, `optim/…`; the orchestrator's `reward/mean`, `batch/…`."""

from __future__ import annotations

from rldk.core.catalog.metric import Key, framework

__all__ = ["PRIME_RL"]

PRIME_RL = framework(
    "prime_rl", "prime-rl",
    signature=("progress/ckpt_step", "progress/samples", "optim/zero_grad_ratio"),
    json_lines=True,
    keys={
        "entropy_mean": ("entropy/all/mean", "entropy/mean"),
        "entropy_min": ("entropy/all/min", "entropy/min"),
        "entropy_max": ("entropy/all/max", "entropy/max"),
        "entropy_std": ("entropy/all/std", "entropy/std"),
        "loss": "loss/mean",
        "grad_norm": "optim/grad_norm",
        "nonfinite_count": "loss/nan_count",
        "lr": "optim/lr",
        "reward_mean": ("reward/mean", "*/all/*/reward/mean"),
        "reward_std": ("reward/std", "*/all/*/reward/std"),
        "reward_min": ("reward/min", "*/all/*/reward/min"),
        "reward_max": ("reward/max", "*/all/*/reward/max"),
        "reward_zero_std_frac": ("batch/solve_none + batch/solve_all", "solved_none + solved_all"),
        "reward_function_mean/*": "metrics/*",
        "rollout_length_mean": "completion_len/mean",
        "rollout_length_min": "completion_len/min",
        "rollout_length_max": "completion_len/max",
        "truncated_frac": "is_truncated/mean",
        "prompt_length_mean": "prompt_len/mean",
        "total_length_mean": "seq_len/mean",
        "aborted_frac": "has_error/mean",
        "mismatch_kl": ("mismatch_kl/all/mean", "mismatch_kl/mean"),
        "mismatch_masked_frac": ("is_masked/mean", "is_masked/all/mean"),
        "tokens_per_second": "perf/throughput",
        "step_time": "time/step",
        "generation_time": "time/generate_completions",
        "update_time": "time/forward_backward",
        "mfu": Key("perf/mfu", "percent"),
        "num_tokens": "progress/total_tokens",
        "step_tokens": "progress/tokens",
        "gpu_memory_gb": "perf/peak_memory",
        "disk_free_gb": "system/ckpt_disk_free_gib",
    },
)
