"""TRL: one set of keys for each family of trainers (`formats/hf_trainer.py` reads its files and its console)."""

from __future__ import annotations

from rldk.core.catalog.metric import Key, framework

__all__ = ["TRL_DPO", "TRL_GRPO", "TRL_OLD", "TRL_PPO", "reward_model_keys"]

TRL_PPO = framework(
    "trl_ppo", "TRL PPO (0.12 to 1.12)",
    signature=("episode", "val/ratio"),
    keys={
        "kl_mean": Key("objective/kl", per="sequence", estimator="k1 or k3"),
        "kl_update": Key("policy/approxkl_avg", estimator="k2"),
        "kl_penalty_reward": "objective/non_score_reward",
        "entropy_mean": "policy/entropy_avg",
        "entropy_sequence": "objective/entropy",
        "clip_frac": "policy/clipfrac_avg",
        "ratio_mean": "val/ratio",
        "ratio_std": Key("val/ratio_var", "root"),
        "policy_loss": "loss/policy_avg",
        "lr": "lr",
        "reward_mean": "objective/scores",
        "reward_after_kl": "objective/rlhf_reward",
        "value_loss": "loss/value_avg",
        "value_clip_frac": "val/clipfrac_avg",
        "eos_count": "val/num_eos_tokens",
        "samples_per_second": "eps",
        "episodes": "episode",
    },
)

TRL_GRPO = framework(
    "trl_grpo", "TRL GRPO and RLOO",
    known="vespo/* tools/latency_s tools/parallel_calls_* delta/* sampling/* clip_ratio/* completions/* profiling/*",
    keys={
        "kl_mean": Key("kl", estimator="k3"),
        "entropy_mean": ("entropy", "entropy/mean"),
        "entropy_coef": "entropy_coef",
        "clip_frac": ("clip_ratio/region_mean", "clip_ratio", "cispo_clip_ratio"),
        "clip_frac_low": "clip_ratio/low_mean",
        "clip_frac_high": "clip_ratio/high_mean",
        "clip_frac_low_min": "clip_ratio/low_min",
        "clip_frac_high_max": "clip_ratio/high_max",
        "loss": "loss",
        "policy_loss": "policy_loss",
        "aux_loss": "aux_loss",
        "grad_norm": "grad_norm",
        "lr": "learning_rate",
        "reward_mean": "reward",
        "reward_std": "reward_std",
        "reward_zero_std_frac": "frac_reward_zero_std",
        "reward_function_mean/*": ("rewards/*/mean", "rewards/*"),
        "reward_function_std/*": "rewards/*/std",
        "tool_failure_rate": "tools/failure_frequency",
        "tool_calls_mean": "tools/call_frequency",
        "tool_unknown_count": "tools/unknown_name_total",
        "tool_loop_exhausted_frac": "tools/loop_exhausted_frac",
        "rollout_length_mean": ("completions/mean_length", "completion_length"),
        "rollout_length_min": "completions/min_length",
        "rollout_length_max": "completions/max_length",
        "terminated_length_mean": "completions/mean_terminated_length",
        "terminated_length_min": "completions/min_terminated_length",
        "terminated_length_max": "completions/max_terminated_length",
        "truncated_frac": "completions/clipped_ratio",
        "mismatch_logp_diff": "sampling/sampling_logp_difference/mean",
        "mismatch_logp_diff_max": "sampling/sampling_logp_difference/max",
        "sampling_ratio_mean": "sampling/importance_sampling_ratio/mean",
        "sampling_ratio_min": "sampling/importance_sampling_ratio/min",
        "sampling_ratio_max": "sampling/importance_sampling_ratio/max",
        "step_time": "step_time",
        "num_tokens": "num_tokens",
    },
)

TRL_DPO = framework(
    "trl_dpo", "TRL DPO, SFT and reward modelling",
    known="mean_reward min_reward max_reward eval_mean_reward eval_min_reward eval_max_reward",
    keys={
        "entropy_mean": "entropy",
        "chosen_logits_mean": "logits/chosen",
        "rejected_logits_mean": "logits/rejected",
        "loss": "loss",
        "aux_loss": "aux_loss",
        "grad_norm": "grad_norm",
        "lr": "learning_rate",
        "reward_min": "min_reward",
        "reward_max": "max_reward",
        "accuracy": "accuracy",
        "preference_margin": ("rewards/margins", "margin"),
        "preference_accuracy": "rewards/accuracies",
        "chosen_reward_mean": "rewards/chosen",
        "rejected_reward_mean": "rewards/rejected",
        "chosen_logp_mean": "logps/chosen",
        "rejected_logp_mean": "logps/rejected",
        "token_accuracy": "mean_token_accuracy",
        "num_tokens": "num_tokens",
    },
)

TRL_OLD = framework(
    "trl_old", "TRL PPO, old style (to 0.11)",
    keys={
        "kl_mean": (Key("ppo/policy/kl_mean", per="unstated"), Key("objective/kl", per="sequence", estimator="k1")),
        "kl_std": "ppo/policy/kl_std",
        "kl_update": (Key("ppo/policy/approxkl", estimator="k2"), Key("ppo/policy/policykl", estimator="k1")),
        "kl_coef": "objective/kl_coef",
        "kl_penalty_reward": Key("ppo/mean_non_score_reward", per="token"),
        "entropy_mean": "ppo/policy/entropy",
        "entropy_sequence": "objective/entropy",
        "clip_frac": "ppo/policy/clipfrac",
        "loss": "ppo/loss/total",
        "policy_loss": ("ppo/policy/policy_loss", "ppo/loss/policy"),
        "value_policy_loss": "ppo/val/policy_loss",
        "policy_grad_norm": "ppo/policy/grad_norm",
        "value_grad_norm": "ppo/val/grad_norm",
        "lr": "ppo/learning_rate",
        "reward_mean": ("ppo/rewards/mean", "ppo/mean_scores", "env/reward_mean"),
        "reward_std": ("ppo/rewards/std", "ppo/std_scores", "env/reward_std"),
        "reward_min": "ppo/rewards/min",
        "reward_max": "ppo/rewards/max",
        "advantage_mean": ("ppo/advantages/mean", "ppo/policy/advantages_mean"),
        "advantage_std": "ppo/advantages/std",
        "value_loss": ("ppo/val/value_loss", "ppo/loss/value"),
        "value_mean": ("ppo/val/mean", "ppo/val/vpred"),
        "value_std": ("ppo/val/std", Key("ppo/val/var", "root")),
        "value_error": "ppo/val/error",
        "value_clip_frac": "ppo/val/clipfrac",
        "explained_variance": "ppo/val/var_explained",
        "return_mean": "ppo/returns/mean",
        "return_std": Key("ppo/returns/var", "root"),
        "rollout_length_mean": ("ppo/rollout/length_mean", "tokens/responses_len_mean"),
        "rollout_length_std": ("ppo/rollout/length_std", "tokens/responses_len_std"),
        "prompt_length_mean": "tokens/queries_len_mean",
        "step_time": "time/ppo/total",
        "update_time": "time/ppo/optimize_step",
    },
)


def reward_model_keys(present: frozenset[str]) -> dict[str, str]:
    """Keys that mean something else where a reward model is trained on pairs (TRL's `RewardTrainer`), each with its metric.

    The accuracy is that of the pairs. The scores have no metric: no policy is to raise them.
    """
    found = {}
    for prefix, held_out in (("", ""), ("train/", ""), ("eval_", "eval_"), ("eval/", "eval_")):
        if {f"{prefix}margin", f"{prefix}mean_reward"} <= present:
            found[f"{prefix}accuracy"] = f"{held_out}preference_accuracy"
            found |= {f"{prefix}{name}_reward": "" for name in ("mean", "min", "max")}
    return found
