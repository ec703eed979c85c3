"""How far the policy that samples is from the one that trains, on the same tokens, and the weights that correct for it.

Two programs that run one model, or one program with and without a cache, round differently; in 16 bits that is enough to make
training off-policy without a warning (Yao et al. 2025, Your Efficient RL Framework Secretly Brings You Off-Policy RL
Training).
"""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["mismatch_statistics", "truncated_importance"]


def mismatch_statistics(trainer_logp: Tensor, sampler_logp: Tensor, mask: Tensor) -> dict[str, float]:
    """The `mismatch_*` metrics of the catalogue and `sampling_ratio_mean`, over the tokens that count.

    The KL is from the sampler, which drew the tokens, to the trainer (k3). The correlation is missing where one side does not
    vary.
    """
    import torch

    there = mask.bool()
    trainer, sampler = trainer_logp[there].double(), sampler_logp[there].double()
    if not len(trainer):
        return {}
    difference = sampler - trainer
    chances = torch.stack([trainer.exp(), sampler.exp()])
    found = {
        "mismatch_kl": ((-difference).expm1() + difference).mean(),
        "mismatch_logp_diff": difference.abs().mean(),
        "mismatch_prob_diff": (chances[0] - chances[1]).abs().mean(),
        "mismatch_ratio": difference.abs().exp().mean(),
        "sampling_ratio_mean": (-difference).exp().mean(),
    }
    if len(trainer) > 1:
        found["mismatch_prob_corr"] = torch.corrcoef(chances)[0, 1]
    return {name: float(value) for name, value in found.items() if not (name == "mismatch_prob_corr" and isnan(float(value)))}


def truncated_importance(trainer_logp: Tensor, sampler_logp: Tensor, max_weight: float) -> Tensor:
    """How much more likely a token is for the trainer than for the sampler that drew it, at most `max_weight`."""
    return (trainer_logp - sampler_logp).exp().clamp(max=max_weight)
