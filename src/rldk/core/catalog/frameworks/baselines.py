"""OpenAI baselines: console tables `| key | value |` without sections, and CSV files whose names hold spaces."""

from __future__ import annotations

from rldk.core.catalog.metric import Key, framework

__all__ = ["BASELINES"]

BASELINES = framework(
    "baselines", "OpenAI baselines",
    signature=(
        "misc/nupdates", "misc/serial_timesteps", "misc/total_timesteps", "nupdates", "serial_timesteps", "eprewmean",
        "eplenmean", "% time spent exploring",
    ),
    known=(
        "misc/* %?time?spent?exploring time_elapsed TimeElapsed TimestepsSoFar EpisodesSoFar EpThisIter loss/* steps entloss "
        "optimgain surrgain ev_tdlam_before"
    ),
    keys={
        "kl_update": (Key("loss/approxkl", estimator="k2"), Key("approxkl", estimator="k2"), "meankl"),
        "entropy_mean": ("loss/policy_entropy", "policy_entropy"),
        "clip_frac": ("loss/clipfrac", "clipfrac"),
        "policy_loss": ("loss/policy_loss", "policy_loss"),
        "grad_norm": "grad_norm",
        "lr": "lr",
        "reward_mean": ("eprewmean", "mean 100 episode reward", "EpRewMean", "reward_per_episode"),
        "value_loss": ("loss/value_loss", "value_loss"),
        "explained_variance": ("misc/explained_variance", "explained_variance"),
        "rollout_length_mean": ("eplenmean", "EpLenMean"),
        "samples_per_second": ("fps", "misc/fps"),
        "episodes": "episodes",
    },
)
