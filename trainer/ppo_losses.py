"""The losses of one pass through actor and critic."""

from __future__ import annotations

import argparse
from typing import Any

import torch
from torch import Tensor

from experience import Experience
from faults import StepSettings
from rldk.functional.kl import corrected_kl
from rldk.functional.masked import masked_sum
from rldk.functional.policy import clip_fraction, policy_loss, update_kl, value_loss


def losses(
    args: argparse.Namespace, settings: StepSettings, part: Experience, said: Any, weights: Tensor, tokens: int
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss from the models' outputs for a part of a mini-batch, and the sums that metrics are computed from.

    Args:
        said: log-probabilities, entropies and values, as `answers` gives them.
        weights: of each token in the loss.
        tokens: of the whole mini-batch, in all processes.
    """
    mask = part.mask.bool()
    logp, entropy, predicted = said
    logp = logp.where(mask, part.old)
    weights = weights if part.importance is None else weights * part.importance
    loss = policy_loss(logp, part.old, part.advantages, mask, settings.clip_low, clip_high=settings.clip_high, weights=weights)
    if args.kl_in == "loss":
        loss = loss + settings.kl_coef * masked_sum(corrected_kl(logp, part.old, part.reference) * weights, mask)
    bonus = args.entropy_coef * masked_sum(entropy, mask) / tokens if args.entropy_coef else 0.0
    sums = {"actor_loss": loss.detach() * settings.loss_factor}
    whole = loss - bonus
    if predicted is not None:
        error = value_loss(predicted, part.values, part.returns, mask, args.clip_range_value, count=tokens)
        whole = whole + error  # two independent graphs: one backward pass through both
        off = (predicted.detach() - part.values).abs() > args.clip_range_value
        sums |= {"critic_loss": error.detach() * settings.loss_factor, "value_clip_frac": off.logical_and(mask).sum()}
    with torch.no_grad():
        ratio = (logp - part.old).exp()
        inside = ratio.masked_fill(~mask, 1.0)
        sums |= {
            "kl": update_kl(logp, part.old, mask, count=1),
            "clip_frac": clip_fraction(logp, part.old, mask, settings.clip_low, count=1, clip_high=settings.clip_high),
            "ratio_sum": masked_sum(ratio, mask),
            "ratio_squares": masked_sum(ratio * ratio, mask),
            "ratio_min": inside.min(),
            "ratio_max": inside.max(),
        }
    return whole * settings.loss_factor, sums
