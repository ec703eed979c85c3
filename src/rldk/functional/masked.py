"""Means and moments over the tokens that count; a mask is 1 (or true) where a token is part of a response."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["masked_mean", "masked_sum", "masked_var"]


def masked_sum(values: Tensor, mask: Tensor) -> Tensor:
    """The sum over tokens that count. Values outside the mask are ignored, even if they are not finite."""
    return values.where(mask.bool(), values.new_zeros(())).sum()


def masked_mean(values: Tensor, mask: Tensor, count: float | Tensor | None = None) -> Tensor:
    """The mean over tokens that count, NaN where there are none.

    Args:
        values: any shape.
        mask: the same shape.
        count: by what to divide instead, where this is a part of a larger batch: the parts' means then sum up to its mean.
    """
    return masked_sum(values, mask) / (mask.sum() if count is None else count)


def masked_var(values: Tensor, mask: Tensor) -> Tensor:
    """The variance over tokens that count, divided by their number."""
    return masked_mean((values - masked_mean(values, mask)) ** 2, mask)
