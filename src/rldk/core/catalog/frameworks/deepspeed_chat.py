"""DeepSpeed-Chat, step 3: console lines of the losses (`act_loss` or `Actor Loss`), and the average reward on its own line."""

from __future__ import annotations

from rldk.core.catalog.metric import Key, framework

__all__ = ["DEEPSPEED_CHAT"]

DEEPSPEED_CHAT = framework(
    "deepspeed_chat", "DeepSpeed-Chat",
    signature=("ppo_ep", "PPO Epoch", "unsuper_loss", "Unsupervised Loss"),
    known="ppo_ep PPO?Epoch unsuper_loss Average?return Max?return KL?ratio EMA?reward?score",
    keys={
        "kl_mean": Key("Average kl", per="unstated"),
        "kl_max": "Max kl",
        "entropy_mean": "Average entropy",
        "policy_loss": ("act_loss", "Actor Loss", "actor_loss"),
        "ptx_loss": ("unsuper_loss", "Unsupervised Loss"),
        "lr": "lr",
        "policy_lr": "actor_lr",
        "value_lr": "critic_lr",
        "reward_mean": ("average reward score", "Average reward score", "reward", "average_reward", "reward/average_reward"),
        "value_loss": ("cri_loss", "Critic Loss", "critic_loss"),
        "rollout_length_mean": "Average length",
        "samples_per_second": "Samples/sec",
        "epoch": "epoch",
    },
)
