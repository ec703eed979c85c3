"""How gradients flow through the layers of a model: from the norms of each layer to what is weak and what is strong."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite, nan
from typing import Any

__all__ = ["describe_flow"]

STARVED = 1e-4
"""A layer is starved below this share of the median norm of all layers."""


def describe_flow(norms: Mapping[str, float]) -> dict[str, Any]:
    """The gradient flow of a model in a few numbers.

    Returns `layers` (the norm of each), `gradient_norm` (of all), the weakest and the strongest layer with their norms,
    `spread` (strongest / weakest), and `starved`: layers that get next to nothing while others learn.
    """
    if not norms:
        return {}
    ordered = sorted(norms, key=lambda name: norms[name] if isfinite(norms[name]) else float("inf"))
    weakest, strongest = ordered[0], ordered[-1]
    median = norms[ordered[len(ordered) // 2]]
    return {
        "layers": dict(norms),
        "gradient_norm": sum(norm**2 for norm in norms.values()) ** 0.5,
        "weakest_gradient_layer": weakest,
        "weakest_gradient_norm": norms[weakest],
        "strongest_gradient_layer": strongest,
        "strongest_gradient_norm": norms[strongest],
        "spread": norms[strongest] / norms[weakest] if norms[weakest] > 0.0 else nan,
        "starved": [name for name in ordered if norms[name] < STARVED * median],
    }
