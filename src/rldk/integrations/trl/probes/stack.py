"""Finds what a callback is not given: the trainer that calls it, the local variables of its training loop, and what is inside the
wrappers of model and optimizer.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, NamedTuple

__all__ = ["ModelParts", "array_of", "find_trainer", "plain_optimizer", "ratio_of", "rollout_of"]

ROLLOUT = (
    "scores", "values", "returns", "rewards", "kl", "padding_mask", "padding_mask_p1", "sequence_lengths", "contain_eos_token",
    "query_responses", "responses", "context_length",
)  # fmt: skip
"""The local variables of `PPOTrainer.train` that are read; all exist when it logs."""

RATIO = ("ratio", "padding_mask", "micro_batch_inds")
"""Those that are read before an optimizer step; they no longer exist when it logs."""

_DEEP = 60


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


def find_trainer(callback: Any) -> Any:
    """The trainer in whose loop this callback is being called; `None` if there is none on the stack."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_DEEP):
        if frame is None:
            return None
        if "self" in frame.f_code.co_varnames[:1]:
            found = _locals(frame, ("self",)).get("self")
            handler = getattr(found, "callback_handler", None)
            if handler is not None and any(one is callback for one in getattr(handler, "callbacks", ())):
                return found
        frame = frame.f_back
    return None


def rollout_of() -> dict[str, Any] | None:
    """The rollout that the PPO loop on the stack has just trained on; `None` in other trainers."""
    return _of_ppo(ROLLOUT)


def ratio_of() -> tuple[Any, Any, Any] | None:
    """For the next step of the PPO loop: each token's ratio of new to old probability, the padding mask, and the rows of both."""
    found = _of_ppo(RATIO) or {}
    if not all(name in found for name in RATIO):
        return None
    return found["ratio"].detach(), found["padding_mask"], found["micro_batch_inds"]


def array_of(tensor: Any) -> Any:
    """The numbers of a tensor. They may share its memory: copy what you keep."""
    try:
        array = tensor.numpy()
    except (RuntimeError, TypeError):  # it has a gradient, is on a device, or of a type that numpy does not know
        held = tensor.detach().cpu()
        array = (held.float() if held.is_floating_point() else held).numpy()
    return array if array.itemsize != 2 else array.astype("float32")  # of halves no sum would be right


def _of_ppo(wanted: tuple[str, ...]) -> dict[str, Any] | None:
    """Some local variables of `PPOTrainer.train`, where it is on the stack."""
    frame: FrameType | None = sys._getframe(2)
    for _ in range(_DEEP):
        if frame is None:
            return None
        code = frame.f_code
        if code.co_nlocals >= len(ROLLOUT):  # of most frames that is enough: their names are not even listed
            names = code.co_varnames
            if "padding_mask_p1" in names and "sequence_lengths" in names and "returns" in names:
                return _locals(frame, wanted)
        frame = frame.f_back
    return None


def _locals(frame: FrameType, wanted: tuple[str, ...]) -> dict[str, Any]:
    """Some local variables of a frame.

    Before Python 3.13 `f_locals` is a snapshot that the frame keeps, and with it every tensor that was alive then: it is
    emptied as soon as it is read.
    """
    found = frame.f_locals
    taken = {name: found[name] for name in wanted if name in found}
    if sys.version_info < (3, 13):
        found.clear()
    return taken
