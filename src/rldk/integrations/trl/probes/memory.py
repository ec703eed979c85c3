"""What a training keeps in memory, and how to save some of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rldk.integrations.trl.probes.stack import ModelParts, plain_optimizer

__all__ = ["memory_use", "savings"]

_GB = 1e9
_MODELS = {"reference_weights": "ref_model", "reward_weights": "reward_model"}


def memory_use(trainer: Any, model: Any, optimizer: Any) -> dict[str, float]:
    """Gigabytes of each part of the training state in this process; a part that does not exist is absent.

    Activations are not included: they are short-lived, and their peak is part of the event's `gpu_memory_gb`.
    """
    whole, policy, value = ModelParts.of(model)
    trained = [one for one in whole.parameters() if one.requires_grad]
    states = getattr(plain_optimizer(optimizer), "state", {}).values()
    found = {
        "policy_weights": _size(policy.parameters()),
        "value_weights": 0.0 if value is None else _size(value.parameters()),
        **{name: _size(model.parameters()) for name, model in _frozen(trainer).items()},
        "gradients": _size(trained),
        "optimizer_state": _size(one for state in states for one in state.values() if hasattr(one, "numel")),
    }
    return {name: size for name, size in found.items() if size > 0.0}


def savings(use: Mapping[str, float], trainer: Any, args: Any, model: Any) -> list[str]:
    """How to save memory, and how much each saves if that is known; the largest first."""
    adapted = hasattr(ModelParts.of(model).policy, "peft_config")
    weights = [one for other in _frozen(trainer).values() for one in other.parameters()]
    full = _size(one for one in weights if one.element_size() > 2)
    state, gradients = use.get("optimizer_state", 0.0), use.get("gradients", 0.0)
    known: list[tuple[float, str]] = []
    if not adapted and gradients:
        saved = state + gradients + use.get("reference_weights", 0.0)
        known.append((saved, "train a LoRA adapter (`peft_config`): no reference, no gradients and optimizer state of the base"))
    if state > 1.5 * gradients:
        known.append((0.75 * state, "keep the optimizer state in 8 bits (`optim=\"adamw_bnb_8bit\"`)"))
    if full:
        known.append((0.5 * full, "load the reference and the reward model in bfloat16: they are not trained"))
    said = [f"{advice}; saves about {saved:.2g} GB" for saved, advice in sorted(known, reverse=True)]
    if not getattr(args, "gradient_checkpointing", False):
        said.append("recompute activations in the backward pass (`gradient_checkpointing=True`); costs about a third more time")
    if getattr(args, "per_device_train_batch_size", 1) > 1:
        said.append("halve `per_device_train_batch_size` and double `gradient_accumulation_steps`: half of the activations")
    return said


def _frozen(trainer: Any) -> dict[str, Any]:
    """The models that are not trained, by name."""
    held = {name: getattr(trainer, attribute, None) for name, attribute in _MODELS.items()}
    return {name: model for name, model in held.items() if hasattr(model, "parameters")}


def _size(tensors: Iterable[Any]) -> float:
    """Gigabytes of tensors, each counted once."""
    return float(sum({id(one): one.numel() * one.element_size() for one in tensors}.values())) / _GB
