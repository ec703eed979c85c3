"""The metrics of a step of PPO: of the rollouts of all processes, and of the updates."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor

from data_order import Cut, batch_indices
from models import count_parameters
from ppo_models import Learners
from rldk.core.stats.pairs import rank_correlation
from rldk.functional.advantages import describe
from rldk.functional.gradients import combined_norm
from rldk.functional.kl import kl_per_sequence, kl_per_token
from rldk.functional.masked import masked_mean, masked_var
from rldk.functional.mismatch import mismatch_statistics
from rldk.functional.policy import explained_variance
from rldk.functional.preflight import DistinctCount, digest, has_dropout, shares_weights
from rldk.functional.responses import describe_responses, distinct_endings, sample_responses
from rldk.functional.throughput import rl_step_flops
from rldk.functional.weights import WeightSample
from rollout import Rollout


def gathered(accelerator: Accelerator, roll: Rollout, **tensors: Tensor) -> dict[str, Tensor]:
    """The rollouts of all processes, in the order of the ranks; shorter ones are padded, outside of the mask."""
    found = {**tensors, "mask": roll.mask, "ended": roll.ended, "responses": roll.responses, "sampled": roll.logprobs}
    if accelerator.num_processes > 1:
        found = {
            key: accelerator.gather(accelerator.pad_across_processes(value, dim=1) if value.dim() > 1 else value)
            for key, value in found.items()
        }
    return found


def rollout_metrics(whole: dict[str, Tensor], coef: float, group: int = 1) -> dict[str, float]:
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
        "entropy": masked_mean(whole["entropy"], mask),
        "avg_response_len": lengths.mean(),
        "response_len_std": lengths.std(correction=0),
        "rollout_length_min": lengths.min(),
        "rollout_length_max": lengths.max(),
        "eos_frac": whole["ended"].double().mean(),
        "truncated_frac": 1.0 - whole["ended"].double().mean(),
    }
    if "values" in whole:
        found |= {
            "value_mean": masked_mean(whole["values"], mask),
            "value_std": masked_var(whole["values"], mask).sqrt(),
            "return_mean": masked_mean(whole["returns"], mask),
            "return_std": masked_var(whole["returns"], mask).sqrt(),
        }
        explained = explained_variance(whole["values"], whole["returns"], mask)
        found |= {} if math.isnan(explained) else {"explained_variance": explained}
    if group > 1:
        spread = score.view(-1, group).std(1, correction=0)
        found |= {"reward_group_std": spread.mean(), "reward_zero_std_frac": (spread == 0).double().mean()}
    found |= mismatch_statistics(whole["old"], whole["sampled"], mask)
    # before whitening, which fixes mean and spread; an advantage of a whole response counts once
    found |= describe(whole["raw"][mask] if "values" in whole else whole["raw"][:, 0])
    found |= describe_responses([sample_responses(whole["responses"].cpu(), lengths.cpu())])
    found["distinct_endings_frac"] = distinct_endings(whole["responses"].cpu(), lengths.cpu())
    if len(score) > 2 and bool(score.isfinite().all()):
        correlation = rank_correlation(lengths.tolist(), score.tolist())
        found |= {} if math.isnan(correlation) else {"length_reward_corr": correlation}
    return {key: float(value) for key, value in found.items()}


LOSSES = ("actor_loss", "critic_loss")  # already weighted
SUMMED = ("kl", "clip_frac", "value_clip_frac", "ratio_sum", "ratio_squares")


def update_metrics(accelerator: Accelerator, parts: list[dict[str, Tensor]], tokens: int) -> dict[str, float]:
    """The metrics of one update from the sums of its passes in all processes, divided by its tokens."""
    names = [name for name in (*LOSSES, *SUMMED) if name in parts[0]]
    sums = torch.stack([sum(part[name] for part in parts).double() for name in names])  # type: ignore[union-attr]
    ends = torch.stack([torch.stack([-part["ratio_min"], part["ratio_max"]]) for part in parts]).amax(0)
    if accelerator.num_processes > 1:
        sums = accelerator.reduce(sums, "sum")
        ends = accelerator.gather(ends[None]).amax(0)
    found = {name: value / (1 if name in LOSSES else tokens) for name, value in zip(names, sums.tolist(), strict=True)}
    mean = found.pop("ratio_sum")
    spread = max(found.pop("ratio_squares") - mean * mean, 0.0) ** 0.5
    low, high = ends.tolist()
    return found | {"ratio_mean": mean, "ratio_std": spread, "ratio_min": -low, "ratio_max": high}


def step_metrics(updates: list[dict[str, float]]) -> dict[str, float]:
    """The metrics of a step: means over its updates, and the extremes of the ratio. Empty without updates."""
    if not updates:
        return {}
    found = {key: sum(update[key] for update in updates) / len(updates) for key in updates[0]}
    found |= {
        "ratio_min": min(update["ratio_min"] for update in updates),
        "ratio_max": max(update["ratio_max"] for update in updates),
    }
    norms = [found[key] for key in ("actor_grad_norm", "critic_grad_norm") if key in found]
    return found | {"grad_norm": combined_norm(*norms)}


class RunFacts:
    """Facts about the whole run: constants, the prompts it has seen, and how far its weights have moved."""

    def __init__(self, args: argparse.Namespace, learners: Learners, prompts: Sequence[dict[str, Any]]) -> None:
        self.digests = [digest(item["text"].encode()) for item in prompts]
        self.seen = DistinctCount()
        self.moved = {f"{name}_weight_change": WeightSample(model) for name, model in learners.models.items()}
        self.weights_changed()
        self.facts = {
            "policy_trainable_params": count_parameters(learners.policy),
            "reference_is_policy": shares_weights(learners.policy, learners.reference),
            "dropout_active": has_dropout(learners.policy.train(), try_it=False),
            "max_response_length": args.max_new_tokens,
            "num_iterations": args.ppo_epochs,
            "num_generations": args.num_generations,
            "distinct_prompts_frac": len(set(self.digests)) / len(self.digests),
            "advantage_normalized": args.advantage == "gae" and not args.no_whiten,
            "advantage_raw": True,
        }
        self.facts |= {"target_kl": args.kl_target} if args.kl_target else {}

    def resume(self, steps: int, taken_each: int, seed: int) -> None:
        """Count the prompts of the steps that were made before this process began."""
        for past in range(steps):
            self.seen.add(self.digests[i] for i in batch_indices(len(self.digests), taken_each, past, seed))

    def weights_changed(self) -> None:
        """Measure the weights; to be called before the first update and after those of each step."""
        for sample in self.moved.values():
            sample.measure()

    def metrics(self, taken: Sequence[int]) -> dict[str, float]:
        """The facts after a step with these prompts."""
        found = {name: float(value) for name, value in self.facts.items() if value is not None}
        found["distinct_prompts"] = float(self.seen.add(self.digests[i] for i in taken))
        return found | {name: change for name, sample in self.moved.items() if (change := sample.read()) is not None}


def flops_of_step(cut: Cut, sizes: dict[str, int], tokens: int, updates: int) -> float:
    """The operations of a step with these tokens of prompts and responses: generation, scoring and every update."""
    forwards, critic_forwards = (2, 0) if cut.micro == cut.local else (3, 1)  # passes that are not trained on; see `judged`
    return rl_step_flops(
        tokens, **sizes, forwards=forwards, critic_forwards=critic_forwards, epochs=updates * cut.mini / cut.local
    )
