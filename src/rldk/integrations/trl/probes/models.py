"""The parts of a model as TRL trains it, and the optimizer inside its wrappers."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["ModelParts", "plain_optimizer"]


class ModelParts(NamedTuple):
    """A model without the wrapper for distributed training. PPO trains policy and value model as one."""

    whole: Any
    policy: Any
    value: Any
    """`None` without a value model."""

    @classmethod
    def of(cls, model: Any) -> ModelParts:
        """The parts of what a trainer calls its model."""
        whole = getattr(model, "module", model)
        if not hasattr(whole, "policy"):
            return cls(whole, whole, None)
        return cls(whole, whole.policy, getattr(whole, "value_model", None))


def plain_optimizer(optimizer: Any) -> Any:
    """The optimizer itself, if accelerate has wrapped it."""
    while getattr(optimizer, "optimizer", None) is not None:
        optimizer = optimizer.optimizer
    return optimizer
