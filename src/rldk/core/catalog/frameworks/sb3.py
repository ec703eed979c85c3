"""Stable-Baselines3: console tables (`formats/sb3_console.py`), `progress.csv` and `monitor.csv`."""

from __future__ import annotations

from rldk.core.catalog.metric import Key, framework

__all__ = ["SB3"]

SB3 = framework(
    "sb3", "Stable-Baselines3",
    signature=("time/total_timesteps", "time/iterations", "train/n_updates", "time/time_elapsed"),
    known="train/std train/n_updates train/ent_coef* time/*",
    keys={
        "kl_update": Key("train/approx_kl", estimator="k3"),
        "entropy_mean": Key("train/entropy_loss", "negate"),
        "clip_frac": "train/clip_fraction",
        "clip_range": "train/clip_range",
        "loss": "train/loss",
        "policy_loss": "train/policy_gradient_loss",
        "lr": "train/learning_rate",
        "reward_mean": "rollout/ep_rew_mean",
        "accuracy": "rollout/success_rate",
        "value_loss": "train/value_loss",
        "clip_range_value": "train/clip_range_vf",
        "explained_variance": "train/explained_variance",
        "rollout_length_mean": "rollout/ep_len_mean",
        "samples_per_second": "time/fps",
    },
)
