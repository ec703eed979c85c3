"""Rollouts: prompts in, sampled responses out.

The model reads each prompt once, even if it gets several responses, and then samples one token at a time with its cache.
`model.generate` would do the same with more overhead. The noise is given, one number for each sample and token, so that a
response does not depend on its batch, its process or earlier samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass
class Rollout:
    """Prompts and responses side by side; all tensors have the batch first."""

    tokens: Tensor  # prompt and response, padded left and right
    attention: Tensor  # 0 at padding
    responses: Tensor  # the response part
    mask: Tensor  # 1 at the tokens of the response, its end token included
    logprobs: Tensor  # the sampler's log-probabilities of the response's tokens, at the sampling temperature
    ended: Tensor  # whether the response has an end token
    old: Tensor | None = None  # log-probabilities of the training pass, once it was made


@dataclass
class Scored:
    """The rollouts of a step with their prompts and their scores."""

    batch: dict[str, Any]
    roll: Rollout
    score: Tensor

    def shown(self, tokenizer: Any, count: int = 2) -> list[dict[str, Any]]:
        """The first prompts with their responses and scores, for the event log."""
        words = tokenizer.batch_decode(self.roll.responses[:count], skip_special_tokens=True)
        return [
            {"prompt": prompt, "completion": said, "reward": round(float(reward), 6)}
            for prompt, said, reward in zip(self.batch["texts"][:count], words, self.score[:count], strict=True)
        ]


def respond(policy: Any, batch: dict[str, Any], noise: Tensor, micro: int, settings: Any, pad: int) -> Rollout:
    """A response to each prompt of the batch, `micro` of them at a time, with the temperature and end tokens of the settings."""
    ids, mask = batch["input_ids"].to(policy.device), batch["attention_mask"].to(policy.device)
    parts = [slice(at, at + micro) for at in range(0, len(ids), micro)]
    rolls = [
        generate(policy, ids[part], mask[part], noise[part], settings.temperature, settings.end_tokens, pad) for part in parts
    ]
    return joined(rolls, pad)


def sampling_noise(seed: int, step: int, samples: int, length: int) -> Tensor:
    """Uniform numbers for a step, the same in every process: rows are samples, in the order of the global batch."""
    generator = torch.Generator().manual_seed(((seed & 0xFFFFFFFF) << 24) + step)
    return torch.rand(samples, length, generator=generator)


@torch.no_grad()
def generate(
    model: Any, prompts: Tensor, prompt_mask: Tensor, noise: Tensor, temperature: float, ends: Sequence[int], pad: int
) -> Rollout:
    """Sample a response to each prompt, as many tokens as the noise has columns; stops when all have one of the end tokens."""
    from transformers import DynamicCache

    batch, width = prompts.shape
    noise = noise.to(prompts.device)
    stops = torch.tensor(list(ends), device=prompts.device, dtype=prompts.dtype)
    attention = torch.cat([prompt_mask, prompt_mask.new_ones(batch, noise.shape[1])], dim=1)
    positions = (attention.cumsum(1) - 1).clamp(min=0)
    cache = DynamicCache(config=model.config)
    logits = read_prompts(model, prompts, prompt_mask, cache)
    tokens, chances = [], []
    ended = torch.zeros(batch, 1, dtype=torch.bool, device=prompts.device)
    last, on_cpu = noise.shape[1] - 1, prompts.device.type == "cpu"
    for t, drawn in enumerate(noise.split(1, dim=1)):
        chance = (logits.float() if temperature == 1.0 else logits.float() / temperature).softmax(-1)
        below = chance.cumsum(-1)
        token = torch.searchsorted(below, drawn * below[:, -1:], right=True).clamp_(max=chance.shape[-1] - 1)
        chances.append(chance.gather(1, token))
        tokens.append(token)  # also for finished responses: what follows an end token is removed below
        ended.logical_or_((token == stops).any(1, keepdim=True))
        if t == last or ((on_cpu or t % 8 == 7) and bool(ended.all())):
            break  # a GPU is queried only now and then, since a query stalls it
        upto = width + t + 1
        logits = next_logits(model, token, attention[:, :upto], positions[:, upto - 1 : upto], cache)
    responses = torch.cat(tokens, dim=1)
    is_end = (responses[..., None] == stops).any(-1).long()
    before_end = (is_end.cumsum(1) - is_end) == 0
    mask = before_end.long()
    logprobs = torch.cat(chances, dim=1).log().masked_fill(~before_end, 0.0)
    responses = responses.masked_fill(~before_end, pad)
    whole = torch.cat([prompts, responses], dim=1)
    return Rollout(whole, torch.cat([prompt_mask, mask], dim=1), responses, mask, logprobs, ended.squeeze(1))


def read_prompts(model: Any, prompts: Tensor, mask: Tensor, cache: Any) -> Tensor:
    """The logits after each prompt, with its keys and values in the cache. A prompt in consecutive rows is read once."""
    distinct, where = torch.cat([prompts, mask], dim=1).unique_consecutive(dim=0, return_inverse=True)
    ids, real = distinct.chunk(2, dim=1)
    logits = next_logits(model, ids, real, (real.cumsum(1) - 1).clamp(min=0), cache)
    if len(distinct) == len(prompts):
        return logits
    cache.reorder_cache(where)
    return logits[where]


def next_logits(model: Any, tokens: Tensor, attention: Tensor, positions: Tensor, cache: Any) -> Tensor:
    """The logits after the last of these tokens, which are added to the cache."""
    given = {"input_ids": tokens, "attention_mask": attention, "position_ids": positions}
    return model(**given, past_key_values=cache, use_cache=True, logits_to_keep=1).logits[:, -1]


def joined(rolls: list[Rollout], pad: int) -> Rollout:
    """Several rollouts as one; prompts have the same width, shorter responses are padded on the right."""
    width = max(roll.responses.shape[1] for roll in rolls)

    def together(name: str, fill: float) -> Tensor:
        parts = [getattr(roll, name) for roll in rolls]
        return torch.cat(
            [F.pad(part, (0, width - roll.responses.shape[1]), value=fill) for part, roll in zip(parts, rolls, strict=True)]
        )

    return Rollout(
        together("tokens", pad), together("attention", 0), together("responses", pad), together("mask", 0),
        together("logprobs", 0.0), torch.cat([roll.ended for roll in rolls]),
    )  # fmt: skip
