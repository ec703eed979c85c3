"""What PPO logs of a step: of the rollouts of all processes together, and of the updates made from them."""

from __future__ import annotations

import math
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor

from rldk.functional.kl import kl_per_sequence, kl_per_token
from rldk.functional.masked import masked_mean, masked_var
from rldk.functional.policy import explained_variance
from rldk.functional.responses import describe_responses, sample_responses
from rldk.functional.sample import describe
from rollout import Rollout


def gathered(accelerator: Accelerator, roll: Rollout, **tensors: Tensor) -> dict[str, Tensor]:
    """The rollouts of all processes, in the order of the ranks; shorter ones are filled up with what the mask leaves out."""
    found = {**tensors, "mask": roll.mask, "ended": roll.ended, "responses": roll.responses}
    if accelerator.num_processes > 1:
        found = {
            key: accelerator.gather(accelerator.pad_across_processes(value, dim=1) if value.dim() > 1 else value)
            for key, value in found.items()
        }
    return found


def rollout_metrics(whole: dict[str, Tensor], coef: float) -> dict[str, float]:
    """Rewards, KL to the reference, lengths, advantages and values, by the short names of the trainer."""
    mask, score = whole["mask"].bool(), whole["score"].double()
    lengths = mask.sum(1).double()
    per_sequence = kl_per_sequence(whole["kl"], mask)
    found: dict[str, Any] = {
        "reward": score.mean(),
        "reward_std": score.std(correction=0),
        "reward_min": score.min(),
        "reward_max": score.max(),
        "reward_after_kl": score.mean() - coef * per_sequence,
        "kl_ref": kl_per_token(whole["kl"], mask),
        "kl_mean_per_sequence": per_sequence,
        "kl_coef": coef,
        "avg_response_len": lengths.mean(),
        "response_len_std": lengths.std(correction=0),
        "rollout_length_min": lengths.min(),
        "rollout_length_max": lengths.max(),
        "eos_frac": whole["ended"].double().mean(),
        "truncated_frac": 1.0 - whole["ended"].double().mean(),
        "value_mean": masked_mean(whole["values"], mask),
        "value_std": masked_var(whole["values"], mask).sqrt(),
        "return_mean": masked_mean(whole["returns"], mask),
        "return_std": masked_var(whole["returns"], mask).sqrt(),
    }
    found |= describe(whole["raw"][mask])  # before whitening: afterwards mean and spread say nothing
    found |= describe_responses([sample_responses(whole["responses"].cpu(), lengths.cpu())])
    correlation = rank_correlation(lengths, score)
    explained = explained_variance(whole["values"], whole["returns"], mask)
    found |= {} if math.isnan(correlation) else {"length_reward_corr": correlation}
    found |= {} if math.isnan(explained) else {"explained_variance": explained}
    return {key: float(value) for key, value in found.items()}


def rank_correlation(first: Tensor, second: Tensor) -> float:
    """Spearman's correlation, ties at their mean rank; NaN where one of the two does not vary."""
    if len(first) < 3 or not bool(torch.isfinite(second).all()):
        return math.nan
    ranks = [_ranks(values) - (len(values) - 1) / 2 for values in (first, second)]
    norm = ranks[0].norm() * ranks[1].norm()
    return float((ranks[0] @ ranks[1]) / norm) if norm > 0 else math.nan


def _ranks(values: Tensor) -> Tensor:
    _, group, counts = values.unique(return_inverse=True, return_counts=True)
    last = counts.cumsum(0).double()
    return (last - (counts.double() + 1) / 2)[group]


SUMMED = ("actor_loss", "critic_loss", "kl", "clip_frac", "value_clip_frac", "ratio_sum", "ratio_squares", "entropy")


def update_metrics(accelerator: Accelerator, parts: list[dict[str, Tensor]], tokens: Tensor) -> dict[str, float]:
    """The metrics of one update from the sums of its passes in all processes, divided by its tokens."""
    names = [name for name in SUMMED if name in parts[0]]
    sums = torch.stack([sum(part[name] for part in parts).double() for name in names])  # type: ignore[union-attr]
    ends = torch.stack([torch.stack([-part["ratio_min"], part["ratio_max"]]) for part in parts]).amax(0)
    if accelerator.num_processes > 1:
        sums = accelerator.reduce(sums, "sum")
        ends = accelerator.gather(ends[None]).amax(0)
    found = dict(zip(names, (sums / tokens).tolist(), strict=True))
    mean = found.pop("ratio_sum")
    spread = max(found.pop("ratio_squares") - mean * mean, 0.0) ** 0.5
    low, high = ends.tolist()
    return found | {"ratio_mean": mean, "ratio_std": spread, "ratio_min": -low, "ratio_max": high}
