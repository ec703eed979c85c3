"""Corrects the statistics of TRL's PPO, which are means over slots that are only partly filled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["filled_share", "undiluted"]

_AVERAGED = frozenset({
    "policy/approxkl_avg", "policy/clipfrac_avg", "policy/entropy_avg", "loss/policy_avg", "loss/value_avg", "val/clipfrac_avg",
    "val/ratio",
})  # fmt: skip


def filled_share(args: Any) -> float:
    """The share of the slots that TRL's PPO fills, by its settings; 1 for other trainers.

    It has a slot for each epoch, minibatch and accumulation step, but fills only one per micro-batch. With two minibatches and
    two accumulation steps, a minibatch has one micro-batch, and every mean is half of what it should be.
    """
    names = ("gradient_accumulation_steps", "local_mini_batch_size", "per_device_train_batch_size")
    slots, minibatch, micro = (int(getattr(args, name, None) or 0) for name in names)
    if not slots or not minibatch or not micro:
        return 1.0
    return min(1.0, -(-minibatch // micro) / slots)


def undiluted(logs: Mapping[str, Any], share: float) -> Mapping[str, Any]:
    """The logs of PPO with means over the filled slots."""
    if share >= 1.0:
        return logs
    return {key: value / share if key in _AVERAGED and isinstance(value, float) else value for key, value in logs.items()}
