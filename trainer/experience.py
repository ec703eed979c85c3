"""The responses of a step with the models' outputs for each token, and what is learnt from them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import Tensor

from ppo_models import Learners
from rldk.functional.policy import update_kl
from rollout import Rollout

KL_SHARE, KL_RESPONSES = 8, 4  # the KL after the updates is measured on every 8th response of a step, and on 4 at least


@dataclass
class Experience:
    """Rows are responses; columns are their tokens."""

    tokens: Tensor  # prompts and responses
    attention: Tensor
    mask: Tensor  # 1 at the response's tokens, the last columns of `tokens`
    old: Tensor  # log-probabilities before the first update, by the pass that is trained
    reference: Tensor  # log-probabilities under the reference
    values: Tensor | None = None
    advantages: Tensor | None = None
    returns: Tensor | None = None
    importance: Tensor | None = None  # weight of each token, for the mismatch between sampler and trainer

    def part(self, rows: Any) -> Experience:
        """Some responses, without the columns that are padding in all of them."""
        mask, width = self.mask[rows], self.mask.shape[1]
        longest = int(mask.sum(1).max())
        attention = self.attention[rows]
        first = int((attention.cumsum(1) == 0).sum(1).min())
        last = attention.shape[1] - width + longest
        found: dict[str, Any] = {"tokens": self.tokens[rows, first:last], "attention": attention[:, first:last]}
        for name in (field.name for field in fields(self) if field.name not in found):
            value = getattr(self, name)
            found[name] = None if value is None else value[rows, :longest]
        return Experience(**found)


def answers(
    accelerator: Accelerator, learners: Learners, part: Experience, temperature: float, with_entropy: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Log-probabilities and entropies by the actor, and values by the critic if it exists."""
    logp, entropy = learners.actor(part.tokens, part.attention, part.mask, temperature, with_entropy)
    with accelerator.autocast():
        values = None if learners.critic is None else predicted_values(learners.critic, part)
    return logp, entropy, values


def judged(
    accelerator: Accelerator, learners: Learners, roll: Rollout, micro: int, temperature: float
) -> tuple[Experience, Tensor, Any]:
    """The responses with each model's outputs, `micro` at a time, and the policy's entropy at each token.

    `old` comes from the training pass, in the same parts, since the sampler's values may differ by rounding. If one pass is
    the whole step, its graph is kept for the first update.
    """
    empty = torch.zeros_like(roll.logprobs)
    whole = Experience(roll.tokens, roll.attention, roll.mask, empty, empty)
    once = len(roll.tokens) == micro
    said: dict[str, list[Tensor]] = {"old": [], "entropy": [], "reference": [], "values": []}
    for at in range(0, len(roll.tokens), micro):
        part = whole.part(slice(at, at + micro))
        fill = (0, roll.mask.shape[1] - part.mask.shape[1])
        with accelerator.autocast():  # first, so that its memory is free before a graph is kept
            before, _ = learners.reference(part.tokens, part.attention, part.mask, temperature)
        with torch.set_grad_enabled(once):
            graph = answers(accelerator, learners, part, temperature, True)
        for name, value in zip(("old", "entropy", "values", "reference"), (*graph, before), strict=True):
            if value is not None:
                said[name].append(F.pad(value.detach().float(), fill))
    found = {name: torch.cat(parts) for name, parts in said.items() if parts}
    entropy = found.pop("entropy")
    return Experience(roll.tokens, roll.attention, roll.mask, **found), entropy, graph if once else None


def predicted_values(critic: Any, part: Experience) -> Tensor:
    positions = (part.attention.cumsum(1) - 1).clamp(min=0)
    logits = critic(input_ids=part.tokens, attention_mask=part.attention, position_ids=positions, use_cache=False).logits
    return logits[:, -part.mask.shape[1] - 1 : -1, 0].float().masked_fill(part.mask == 0, 0.0)


@torch.no_grad()
def kl_after(
    accelerator: Accelerator, learners: Learners, experience: Experience, micro: int, temperature: float, lengths: Tensor
) -> float:
    """KL per token from the policy before the updates to the one after the last of them (k3).

    Measured on every eighth response of the step, at least four of them, the same ones however many processes share it: a pass
    over all would cost a sixth of an update. `lengths` are the tokens of all responses, a row for each process.
    """
    every = max(min(KL_SHARE, lengths.numel() // KL_RESPONSES), 1)
    first = accelerator.process_index * lengths.shape[1]
    rows = torch.arange(-first % every, lengths.shape[1], every, device=accelerator.device)
    total = torch.zeros((), device=accelerator.device)
    for chosen in rows.split(micro) if len(rows) else ():
        part = experience.part(chosen)
        logp, _ = learners.actor(part.tokens, part.attention, part.mask, temperature)
        total += update_kl(logp, part.old, part.mask, count=1)
    return float(accelerator.reduce(total, "sum")) / max(int(lengths.flatten()[::every].sum()), 1)
