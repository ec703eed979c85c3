"""Advantages: how they are estimated and whitened. How they are described is in sample.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rldk.functional.masked import masked_mean, masked_var

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["gae", "group_relative", "leave_one_out", "whiten"]


def gae(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float = 1.0, lam: float = 0.95) -> tuple[Tensor, Tensor]:
    """Generalised advantage estimation (Schulman et al. 2016) over responses that end where their mask does.

    Args:
        rewards: reward at each token, `(batch, time)`.
        values: value before each token.
        mask: 1 at the tokens of a response, which stand without a gap.
        gamma: discount.
        lam: 0 trusts the value function for all but one step, 1 trusts only the rewards.

    Returns:
        Advantages and returns (advantage + value), both 0 outside the mask.
    """
    import torch

    keep = mask.to(values.dtype)
    values = values.where(mask.bool(), values.new_zeros(()))
    following = torch.cat([values[:, 1:], values.new_zeros(len(values), 1)], dim=1)
    deltas = (rewards + gamma * following - values).where(mask.bool(), values.new_zeros(()))
    decay = gamma * lam
    found = []
    last = deltas.new_zeros(len(deltas))
    for delta in reversed(deltas.unbind(1)):
        last = delta + decay * last
        found.append(last)
    advantages = torch.stack(found[::-1], dim=1) * keep
    return advantages, advantages + values


def whiten(values: Tensor, mask: Tensor, mean: Tensor | None = None, var: Tensor | None = None) -> Tensor:
    """Shift and scale to mean 0 and variance 1 over the tokens that count; 0 elsewhere.

    Args:
        values: any shape.
        mask: the same shape.
        mean: of the whole batch, where this is a part of it.
        var: likewise.
    """
    mean = masked_mean(values, mask) if mean is None else mean
    var = masked_var(values, mask) if var is None else var
    return ((values - mean) * (var + 1e-8).rsqrt()).where(mask.bool(), values.new_zeros(()))


def group_relative(scores: Tensor, group: int, scale: bool = True) -> Tensor:
    """Advantages of GRPO (Shao et al. 2024): each score less the mean of its group, over the spread of the group.

    Args:
        scores: one for each response; the `group` responses to one prompt stand next to each other.
        group: responses to each prompt.
        scale: whether to divide by the group's standard deviation (of a sample); Dr. GRPO (Liu et al. 2025) does not.
    """
    grouped = _groups(scores, group)
    found = grouped - grouped.mean(1, keepdim=True)
    if scale:
        found = found / (grouped.std(1, keepdim=True) + 1e-4)
    return found.reshape(scores.shape)


def leave_one_out(scores: Tensor, group: int) -> Tensor:
    """Advantages of RLOO (Ahmadian et al. 2024): each score less the mean of the others in its group."""
    grouped = _groups(scores, group)
    others = (grouped.sum(1, keepdim=True) - grouped) / (group - 1)
    return (grouped - others).reshape(scores.shape)


def _groups(scores: Tensor, group: int) -> Tensor:
    if group < 2 or len(scores) % group:
        raise ValueError(f"Expected groups of at least 2 that divide {len(scores)} scores, got groups of {group}.")
    return scores.view(-1, group)
