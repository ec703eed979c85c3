"""OpenRLHF, as JSON lines: `policy_loss`, `reward`, `return`, `kl`, `rollout/…` and `timing/…`."""

from __future__ import annotations

from rldk.core.catalog.metric import Key, framework

__all__ = ["OPENRLHF"]

OPENRLHF = framework(
    "openrlhf", "OpenRLHF",
    signature=("timing/make_experience", "timing/broadcast", "act_loss"),
    json_lines=True,
    known="eval/* eval_*_pass* timing/* rollout/num_samples num_actions logprobs_diff* eval_num_samples *_std generated_samples",
    keys={
        "kl_mean": "kl",
        "kl_update": "ppo_kl",
        "entropy_mean": ("entropy_loss", "ent_loss", "entropy"),
        "clip_frac": "ppo_clip_ratio",
        "policy_loss": ("policy_loss", "act_loss"),
        "ptx_loss": "ptx_loss",
        "grad_norm": "grad_norm",
        "policy_grad_norm": "actor_grad_norm",
        "value_grad_norm": "critic_grad_norm",
        "policy_lr": ("actor_lr", "act_lr"),
        "value_lr": "critic_lr",
        "reward_mean": ("reward", "rollout/reward_mean"),
        "reward_after_kl": "return",
        "reward_std": ("rollout/reward_std", "reward_std"),
        "reward_group_std": "group_reward_std",
        "reward_zero_std_frac": Key("dynamic_filtering_pass_rate", "complement"),
        "value_loss": "critic_loss",
        "value_mean": "values",
        "rollout_length_mean": ("response_length", "rollout/response_length_mean", "gen_len"),
        "truncated_frac": ("truncated", "rollout/truncated_rate", "response_clip_ratio"),
        "total_length_mean": ("total_length", "tot_len"),
        "mismatch_kl": "vllm_kl",
        "mismatch_logp_diff": "logprobs_diff",
        "mismatch_masked_frac": "is_filter_ratio",
        "step_time": "timing/step_total",
        "generation_time": "timing/generation",
        "update_time": "timing/ppo_train",
    },
)
