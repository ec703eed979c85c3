"""What can be known of a run before it has learnt anything: shared weights, dropout, the variety of its prompts."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.nn import Module

__all__ = ["DistinctCount", "digest", "has_dropout", "shares_weights"]

_SHARES = ("attention_dropout", "activation_dropout", "hidden_dropout", "dropout", "p")
"""Attributes that hold the share that is dropped, of modules and of those that drop by a function."""

_PROBE_TOKENS = 8
_SAME = 1e-3


def shares_weights(policy: Module, reference: Module) -> bool | None:
    """Whether training the policy trains the reference, too; `None` where the weights are not here to compare.

    Layers that both share and that are not trained do no harm.
    """
    if policy is reference:
        return True
    places = {one.data_ptr() for one in reference.parameters()} - {0}
    trained = {one.data_ptr() for one in policy.parameters() if one.requires_grad} - {0}
    if not places or not any(one.data_ptr() for one in policy.parameters()):
        return None
    return not places.isdisjoint(trained)


def has_dropout(policy: Module, try_it: bool = True) -> bool:
    """Whether the policy, in the mode that it is in now, drops some of its activations at random.

    Detected from the settings of the modules or, with `try_it`, from two answers to one short input, since dropout may be in a
    function or a hook. The random numbers of training are left as they are.
    """
    training = [module for module in policy.modules() if module.training]
    if not training:
        return False
    return any(map(_drops, training)) or (try_it and _answers_differ(policy))


def _drops(module: Module) -> bool:
    """Whether a module in training mode drops anything; `p` is a share in modules that are made for it alone."""
    names = _SHARES if "Dropout" in type(module).__name__ else _SHARES[:-1]
    return any(isinstance(share := getattr(module, name, None), (float, int)) and share > 0 for name in names)


def _answers_differ(policy: Any) -> bool:
    import torch

    if getattr(getattr(policy, "config", None), "is_encoder_decoder", False):
        return False
    device = next(policy.parameters()).device
    tokens = torch.arange(1, _PROBE_TOKENS + 1, device=device).unsqueeze(0)
    tokens %= int(getattr(getattr(policy, "config", None), "vocab_size", None) or _PROBE_TOKENS)
    with torch.no_grad(), torch.random.fork_rng([device] if device.type == "cuda" else []):
        first, second = (policy(input_ids=tokens, attention_mask=torch.ones_like(tokens)).logits.float() for _ in range(2))
    apart = (first - second).abs() / (first.abs() + second.abs()).clamp(min=torch.finfo(first.dtype).tiny)
    return bool(apart.median() > _SAME)  # some scores may be set to a large constant, and are the same in both


def digest(prompt: bytes) -> int:
    """A number for a prompt, the same in every process."""
    return int.from_bytes(blake2b(prompt, digest_size=8).digest(), "big")


class DistinctCount:
    """Counts different things by their digests, in bounded memory: beyond `max_count` it counts no further."""

    def __init__(self, max_count: int = 65_536) -> None:
        self._seen: set[int] = set()
        self.max_count = max_count

    def add(self, digests: Iterable[int]) -> int:
        """How many there are with these."""
        if len(self._seen) < self.max_count:
            self._seen.update(digests)
        return min(len(self._seen), self.max_count)
