"""CleanRL: TensorBoard tags and CSV columns."""

from __future__ import annotations

from rldk.core.catalog.metric import Key, framework

__all__ = ["CLEANRL"]

CLEANRL = framework(
    "cleanrl", "CleanRL",
    keys={
        "kl_update": (Key("losses/approx_kl", estimator="k3, last minibatch only"), Key("losses/old_approx_kl", estimator="k1")),
        "entropy_mean": "losses/entropy",
        "clip_frac": "losses/clipfrac",
        "policy_loss": "losses/policy_loss",
        "lr": "charts/learning_rate",
        "reward_mean": ("charts/episodic_return", "charts/avg_episodic_return"),
        "value_loss": "losses/value_loss",
        "explained_variance": "losses/explained_variance",
        "rollout_length_mean": "charts/episodic_length",
        "samples_per_second": "charts/SPS",
    },
)
