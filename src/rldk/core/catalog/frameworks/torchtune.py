"""torchtune: its PPO and GRPO recipes, as text (`Step 1 | loss:0.1 …`), W&B or TensorBoard.

The `kl` of its PPO is a sum over the response; the `kl_loss` of its GRPO is a mean over tokens.
"""

from __future__ import annotations

from rldk.core.catalog.metric import Key, framework

__all__ = ["TORCHTUNE"]

TORCHTUNE = framework(
    "torchtune", "torchtune",
    signature=("approx_policy_kl", "num_stop_tokens", "response_lengths"),
    known="tokens_per_second_per_gpu_* speed/* generation_steps gradient_steps peak_memory_* max_memory_* successes",
    keys={
        "kl_mean": (Key("kl", per="sequence"), "kl_loss"),
        "kl_update": ("approx_policy_kl", "approx_policy_kls"),
        "kl_penalty_reward": "kl_reward",
        "clip_frac": "clipfrac",
        "ratio_mean": "ratios",
        "loss": "loss",
        "policy_loss": "policy_loss",
        "grad_norm": "grad_norm",
        "lr": "lr",
        "reward_mean": ("scores", "rewards"),
        "reward_after_kl": "rlhf_reward",
        "accuracy": "successes",
        "value_loss": "value_loss",
        "rollout_length_mean": ("response_lengths", "response/response_lengths"),
        "truncated_frac": "response/length_clip_ratio",
        "eos_count": "num_stop_tokens",
        "tokens_per_second": "tokens_per_second_per_gpu_trajectory",
        "gpu_memory_gb": "peak_memory_alloc",
        "gpu_memory_reserved_gb": "peak_memory_reserved",
    },
)
