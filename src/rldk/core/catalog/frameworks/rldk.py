"""rldk's own event log: canonical names, and the older names that are read as aliases of them."""

from __future__ import annotations

from rldk.core.catalog.metric import Key, framework

__all__ = ["RLDK"]

RLDK = framework(
    "rldk", "rldk event log",
    keys={
        "kl_mean": (Key("kl_mean", per="unstated"), Key("kl", per="unstated")),
        "entropy_mean": ("entropy_mean", "entropy"),
        "loss": ("loss", "total_loss"),
        "grad_norm": ("grad_norm", "total_grad_norm"),
        "policy_grad_norm": ("policy_grad_norm", "grad_norm_policy"),
        "value_grad_norm": ("value_grad_norm", "grad_norm_value"),
        "lr": ("lr", "learning_rate"),
    },
)
