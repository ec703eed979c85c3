"""Norms of gradients, and how gradients flow through the layers of a model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Parameter

__all__ = ["combined_norm", "describe_flow", "gradient_norm", "gradient_norms"]

STARVED = 1e-4
"""A layer is starved below this share of the median norm of all layers."""


def _gradients(parameters: Iterable[Parameter]) -> list[Tensor]:
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def gradient_norm(parameters: Iterable[Parameter]) -> float:
    """The Euclidean norm over all gradients together; NaN where there are none, which is not the same as 0."""
    import torch

    gradients = _gradients(parameters)
    if not gradients:
        return float("nan")
    return float(torch.linalg.vector_norm(torch.stack(list(torch._foreach_norm(gradients)))))


def gradient_norms(parameters: Iterable[Parameter]) -> list[float]:
    """The Euclidean norm of each gradient that is there, in order, read from the device at once."""
    import torch

    gradients = _gradients(parameters)
    found: list[float] = torch.stack(list(torch._foreach_norm(gradients))).tolist() if gradients else []
    return found


def combined_norm(*norms: float) -> float:
    """The norm of the whole from the norms of its parts."""
    return math.hypot(*norms)


def describe_flow(norms: Mapping[str, float]) -> dict[str, Any]:
    """The gradient flow of a model in a few numbers.

    Returns `layers` (the norm of each), `gradient_norm` (of all), the weakest and the strongest layer with their norms,
    `spread` (strongest / weakest), and `starved`: layers that get next to nothing while others learn.
    """
    if not norms:
        return {}
    ordered = sorted(norms, key=lambda name: norms[name] if math.isfinite(norms[name]) else float("inf"))
    weakest, strongest = ordered[0], ordered[-1]
    median = norms[ordered[len(ordered) // 2]]
    return {
        "layers": dict(norms),
        "gradient_norm": sum(norm**2 for norm in norms.values()) ** 0.5,
        "weakest_gradient_layer": weakest,
        "weakest_gradient_norm": norms[weakest],
        "strongest_gradient_layer": strongest,
        "strongest_gradient_norm": norms[strongest],
        "spread": norms[strongest] / norms[weakest] if norms[weakest] > 0.0 else math.nan,
        "starved": [name for name in ordered if norms[name] < STARVED * median],
    }
