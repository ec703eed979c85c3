"""Norms of gradients."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Parameter

__all__ = ["combined_norm", "gradient_norm", "gradient_norms"]


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
