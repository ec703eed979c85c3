"""verl: console lines `step:7 - actor/pg_loss:0.1 - …` (`formats/verl_console.py`), and JSON lines of its file logger."""

from __future__ import annotations

from rldk.core.catalog.metric import Key, framework

__all__ = ["VERL"]

VERL = framework(
    "verl", "verl",
    signature=("training/global_step", "timing_s/adv", "timing_s/reward", "perf/total_num_tokens"),
    known=(
        "timing_s/* timing/* timing_per_token_ms/* *_before_processing *_after_processing perf/* global_seqlen/* "
        "prompt_length/* response_length_non_aborted/* num_turns/* training/num_turns/* tool_call_counts/* val-aux/* "
        "val-core/*/std@* val/n_* training/rollout_probs_diff_* variance_proxy/* rollout_corr/* mismatch/* rollout/* "
        "training/off_policy/* training/filter_groups/* fully_async/* rollouter/* distillation/* gdpo/* actor/mfu "
        "critic/mfu critic/rewards/* actor/pg_loss_* actor/kl_* training/*"
    ),
    keys={
        "kl_mean": (Key("actor/kl_loss", estimator="k3 unless set"), Key("actor/reward_kl_penalty", estimator="k1 unless set")),
        "kl_update": Key("actor/ppo_kl", estimator="k1"),
        "kl_coef": ("actor/kl_coef", "actor/reward_kl_penalty_coeff"),
        "entropy_mean": ("actor/entropy", "actor/entropy_loss"),
        "clip_frac": "actor/pg_clipfrac",
        "clip_frac_dual": "actor/pg_clipfrac_lower",
        "expert_violation_max": "rollout/moe/max_vio/max",
        "expert_violation_mean": "rollout/moe/avg_vio/avg",
        "policy_loss": "actor/pg_loss",
        "policy_grad_norm": "actor/grad_norm",
        "value_grad_norm": "critic/grad_norm",
        "policy_lr": ("actor/lr", Key("actor/lr(1e-4)", "ten_thousandth")),
        "value_lr": ("critic/lr", Key("critic/lr(1e-4)", "ten_thousandth")),
        "reward_mean": "critic/score/mean",
        "reward_after_kl": "critic/rewards/mean",
        "reward_min": "critic/score/min",
        "reward_max": "critic/score/max",
        "tool_calls_mean": "tool_call_counts/mean",
        "advantage_mean": "critic/advantages/mean",
        "advantage_min": "critic/advantages/min",
        "advantage_max": "critic/advantages/max",
        "value_loss": "critic/vf_loss",
        "value_mean": ("critic/values/mean", "critic/vpred_mean"),
        "value_min": "critic/values/min",
        "value_max": "critic/values/max",
        "value_clip_frac": "critic/vf_clipfrac",
        "explained_variance": "critic/vf_explained_var",
        "return_mean": "critic/returns/mean",
        "return_min": "critic/returns/min",
        "return_max": "critic/returns/max",
        "rollout_length_mean": "response_length/mean",
        "rollout_length_min": "response_length/min",
        "rollout_length_max": "response_length/max",
        "truncated_frac": "response_length/clip_ratio",
        "prompt_length_mean": "prompt_length/mean",
        "turns_mean": ("num_turns/mean", "training/num_turns/mean"),
        "turns_max": ("num_turns/max", "training/num_turns/max"),
        "aborted_frac": "response/aborted_ratio",
        "mismatch_kl": (
            Key("rollout_corr/kl", estimator="k1"), Key("rollout_corr/k3_kl", estimator="k3"),
            Key("mismatch/mismatch_kl", estimator="k1"),
        ),
        "mismatch_prob_diff": "training/rollout_probs_diff_mean",
        "mismatch_prob_diff_max": "training/rollout_probs_diff_max",
        "mismatch_prob_corr": "training/rollout_actor_probs_pearson_corr",
        "sampling_ratio_mean": "rollout_corr/rollout_is_mean",
        "sampling_ratio_min": "rollout_corr/rollout_is_min",
        "sampling_ratio_max": "rollout_corr/rollout_is_max",
        "sampling_ratio_std": "rollout_corr/rollout_is_std",
        "mismatch_ess": "rollout_corr/rollout_is_eff_sample_size",
        "mismatch_chi2": "rollout_corr/chi2_token",
        "mismatch_chi2_sequence": "rollout_corr/chi2_seq",
        "mismatch_clipped_frac": ("rollout_corr/rollout_is_ratio_fraction_high", "rollout_corr/rollout_is_oob_ratio"),
        "mismatch_masked_frac": "rollout_corr/rollout_rs_masked_fraction",
        "mismatch_masked_sequence_frac": "rollout_corr/rollout_rs_seq_masked_fraction",
        "staleness_mean": "training/off_policy/trajectory_staleness/mean",
        "staleness_max": "training/off_policy/trajectory_staleness/max",
        "dropped_rollouts": ("training/off_policy/evicted_samples", "fully_async/count/dropped_stale_samples"),
        "failed_rollouts": "training/rollout_failure/evicted_samples",
        "tokens_per_second": "perf/throughput",
        "step_time": ("timing_s/step", "perf/time_per_step"),
        "generation_time": "timing_s/gen",
        "update_time": "timing_s/update_actor",
        "mfu": ("perf/mfu/actor", "mfu/actor", "actor/mfu"),
        "step_tokens": "perf/total_num_tokens",
        "gpu_memory_gb": "perf/max_memory_allocated_gb",
        "gpu_memory_reserved_gb": "perf/max_memory_reserved_gb",
        "cpu_memory_gb": "perf/cpu_memory_used_gb",
        "epoch": "training/epoch",
    },
)
