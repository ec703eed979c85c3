"""From scores to advantages: at each token by GAE, or for each response from the scores of its group."""

from __future__ import annotations

import argparse

import torch
from torch import Tensor

from experience import Experience
from rldk.functional.advantages import gae, group_relative, leave_one_out, whiten
from rldk.functional.masked import masked_mean, masked_var


def raw_advantages(args: argparse.Namespace, experience: Experience, score: Tensor, paid: Tensor) -> Tensor:
    """Advantages before whitening; GAE also sets the returns of the experience.

    Args:
        score: of each response.
        paid: the KL penalty of each token.
    """
    mask = experience.mask.bool()
    if args.advantage == "gae":
        rewards = -paid
        rewards[torch.arange(len(rewards)), experience.mask.sum(1) - 1] += score  # the end token earns the score
        raw, experience.returns = gae(rewards, experience.values, mask, args.gamma, args.lam)
        return raw
    score = score - paid.sum(1)
    if args.advantage == "rloo":
        raw = leave_one_out(score, args.num_generations)
    else:
        raw = group_relative(score, args.num_generations, scale=args.advantage == "grpo")
    return raw[:, None].expand(mask.shape).masked_fill(~mask, 0.0)


def whitened(raw: Tensor, mask: Tensor, whole: dict[str, Tensor]) -> Tensor:
    """Normalised to mean 0 and standard deviation 1 over all processes."""
    mean, var = masked_mean(whole["raw"], whole["mask"]), masked_var(whole["raw"], whole["mask"])
    return whiten(raw, mask.bool(), mean, var)
