"""Advantages: how they are estimated and whitened, and a sample of them in a few numbers."""

from __future__ import annotations

from math import isfinite, nan, sqrt
from typing import TYPE_CHECKING, Any

from rldk.core.errors import UsageError
from rldk.functional.masked import masked_mean, masked_var

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["describe", "gae", "group_relative", "leave_one_out", "whiten"]

QUANTILES = {
    "advantage_min": 0.0, "advantage_p5": 0.05, "advantage_p25": 0.25, "advantage_median": 0.5, "advantage_p75": 0.75,
    "advantage_p95": 0.95, "advantage_max": 1.0,
}  # fmt: skip


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


def describe(values: Any, name: str = "advantages") -> dict[str, float]:
    """The canonical advantage metrics of a sample: a sequence, an array or a tensor, of any shape.

    The standard deviation is that of a sample (divided by n - 1), skewness and excess kurtosis are those of the
    population moments, and percentiles are interpolated linearly. They are of the finite values; if some are not, the
    mean and the deviation are NaN, as they would be in the loss. An empty sample says nothing.
    """
    import numpy as np

    if hasattr(values, "detach"):
        values = values.detach().float().cpu().numpy()
    try:
        every = np.asarray(values, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise UsageError(f"Expected `{name}` to be a sample of numbers, got {values!r:.80}.") from None
    ordered = np.sort(every)  # a copy; what is not finite comes to stand at its ends
    if not len(every):
        return {}
    whole = isfinite(ordered[0]) and isfinite(ordered[-1])
    if not whole:
        ordered = ordered[np.isfinite(ordered)]
    count = len(ordered)
    if not count:
        return {"advantage_mean": nan, "advantage_std": nan}
    scale = max(-float(ordered[0]), float(ordered[-1])) or 1.0
    ordered /= scale
    varies = ordered[0] != ordered[-1]
    mean = float(np.add.reduce(ordered)) / count if varies else float(ordered[0])
    away = ordered - mean if varies else np.zeros(1)
    square = away * away
    m2 = float(np.add.reduce(square)) / len(away)
    found = {
        "advantage_mean": mean * scale if whole else nan,
        "advantage_std": sqrt(m2 * count / (count - 1)) * scale if whole and count > 1 else nan,
        "advantage_skewness": float(square.dot(away)) / len(away) / m2**1.5 if m2 > 0.0 else nan,
        "advantage_kurtosis": float(square.dot(square)) / len(away) / m2**2 - 3.0 if m2 > 0.0 else nan,
    }
    for part, share in QUANTILES.items():
        below, rest = divmod(share * (count - 1), 1.0)
        value = float(ordered[int(below)])
        found[part] = (value + rest * (float(ordered[int(below) + 1]) - value) if rest else value) * scale
    return {name: value for name, value in found.items() if value == value or not whole}
