"""prime-rl, as JSON lines: the trainer's `loss/mean`, `mismatch_kl/…`, `optim/…`; the orchestrator's `reward/mean`, `batch/…`,
and since 0.8 `train/<env>/{all,effective}/<agent>/…`, with all environments together under `agg`. The console of both is read
too: `Step 3 | Time: 9.1s | Loss: 0.1 | Entropy: 0.3 | Mismatch KL: 0.0007 | Grad. Norm: 0.04 | …`.

Its file monitor leaves out values that are not finite: a NaN becomes a missing key.
"""

from __future__ import annotations

from rldk.core.catalog.metric import Key, framework

__all__ = ["PRIME_RL"]

PRIME_RL = framework(
    "prime_rl", "prime-rl",
    signature=("progress/ckpt_step", "progress/samples", "optim/zero_grad_ratio"),
    json_lines=True,
    known=(
        "time/* perf/* system/* progress/* batch/* dispatcher/* inference/* stop_condition/* error/* pool/* evals/* buffer/* "
        "val/* loss/* entropy/* mismatch_kl/* masked_mismatch_kl/* unmasked_mismatch_kl/* is_masked* masked_advantage_* "
        "kl_ent_ratio/* max_vio/* routing_confidence/* off_policy/* optim/* train/*/all/* train/*/effective/* */all/* "
        "*/effective/* eval/* solved_* filters/* metrics/* reward/* seq_len/* prompt_len/* completion_len/* decode_len/* "
        "prefill_len/* num_turns/* is_truncated/* has_error/* Async?Level Time"
    ),
    keys={
        "entropy_mean": ("entropy/all/mean", "entropy/mean"),
        "entropy_min": ("entropy/all/min", "entropy/min"),
        "entropy_max": ("entropy/all/max", "entropy/max"),
        "entropy_std": ("entropy/all/std", "entropy/std"),
        "expert_violation_max": ("max_vio/mean", "max_vio/all/mean"),
        "loss": "loss/mean",
        "grad_norm": ("optim/grad_norm", "Grad. Norm"),
        "nonfinite_count": "loss/nan_count",
        "lr": "optim/lr",
        "reward_mean": (
            "reward/mean", "reward/all/mean", "agg/all/*/reward/mean", "agg/effective/*/reward/mean", "*/all/*/reward/mean",
            "*/effective/*/reward/mean", "*/effective/*/avg@*", "*/all/*/avg@*",
        ),
        "reward_std": ("reward/std", "agg/all/*/reward/std", "*/all/*/reward/std"),
        "reward_min": ("reward/min", "agg/all/*/reward/min", "*/all/*/reward/min"),
        "reward_max": ("reward/max", "agg/all/*/reward/max", "*/all/*/reward/max"),
        "reward_zero_std_frac": ("batch/solve_none + batch/solve_all", "solved_none + solved_all"),
        "groups_all_good_frac": ("batch/solve_all", "solved_all"),
        "groups_all_bad_frac": ("batch/solve_none", "solved_none"),
        "reward_function_mean/*": "metrics/*",
        "pass_at_k": ("*/effective/*/pass@*", "*/all/*/pass@*"),
        "rollout_length_mean": (
            "completion_len/mean", "decode_len/all/mean", "agg/all/*/num_output_tokens/mean", "*/all/*/num_output_tokens/mean",
            "agg/effective/*/num_output_tokens/mean", "*/effective/*/num_output_tokens/mean",
        ),
        "rollout_length_min": "completion_len/min",
        "rollout_length_max": "completion_len/max",
        "truncated_frac": (
            "is_truncated/mean", "agg/all/*/is_truncated/mean", "*/all/*/is_truncated/mean", "agg/effective/*/is_truncated/mean",
            "*/effective/*/is_truncated/mean",
        ),
        "prompt_length_mean": "prompt_len/mean",
        "total_length_mean": (
            "seq_len/mean", "agg/all/*/num_total_tokens/mean", "*/all/*/num_total_tokens/mean",
            "agg/effective/*/num_total_tokens/mean", "*/effective/*/num_total_tokens/mean", "Seq. Length",
        ),
        "turns_mean": (
            "num_turns/mean", "agg/all/*/num_turns/mean", "*/all/*/num_turns/mean", "agg/effective/*/num_turns/mean",
            "*/effective/*/num_turns/mean",
        ),
        "aborted_frac": ("has_error/mean", "agg/all/*/has_error/mean", "*/all/*/has_error/mean"),
        "mismatch_kl": ("mismatch_kl/all/mean", "mismatch_kl/mean", "Mismatch KL"),
        "mismatch_kl_max": ("mismatch_kl/all/max", "mismatch_kl/max"),
        "mismatch_masked_frac": ("is_masked/mean", "is_masked/all/mean"),
        "staleness_mean": "off_policy/mean",
        "staleness_max": ("off_policy/max", "Max. Off-Policy Level"),
        "dropped_rollouts": "off_policy/dropped",
        "tokens_per_second": "perf/throughput",
        "step_time": "time/step",
        "generation_time": "time/generate_completions",
        "update_time": "time/forward_backward",
        "mfu": Key("perf/mfu", "percent"),
        "num_tokens": "progress/total_tokens",
        "step_tokens": "progress/tokens",
        "gpu_memory_gb": ("perf/peak_memory", "Peak Mem."),
        "disk_free_gb": "system/ckpt_disk_free_gib",
    },
)
