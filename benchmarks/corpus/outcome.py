"""The outcome probe: what the policy is truly worth at an update, measured on held-out prompts.

It shares nothing with the detectors. It samples the policy at temperature 1 with noise that is the same at every update and
in every run, and leaves the random numbers of the training as they were.
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from corpus import world

__all__ = ["OutcomeProbe"]

REPEATS = 2
"""Responses to each held-out prompt."""


class OutcomeProbe:
    """Measures a policy against where it started. `rows` has one entry for each measurement."""

    def __init__(self, policy: Any, reward: str, length: int) -> None:
        self.reward, self.length = reward, length
        self.prompts = world.held_out_prompts() * REPEATS
        encoded = [world.encode(prompt) for prompt in self.prompts]
        width = max(map(len, encoded))
        self.ids = torch.tensor([[world.PAD] * (width - len(row)) + row for row in encoded])
        self.noise = torch.rand(len(encoded), length, generator=torch.Generator().manual_seed(777))
        self.start = {name: weight.detach().float().clone() for name, weight in policy.named_parameters()}
        self.size = math.sqrt(sum(float(weight.square().sum()) for weight in self.start.values()))
        self.last = dict(self.start)
        self.base, self.mirror = self._built_anew(policy), self._built_anew(policy)
        self.rows: list[dict[str, Any]] = []

    @staticmethod
    def _built_anew(policy: Any) -> Any:
        """A model with the policy's weights; a copy would share hooks and patches with it."""
        kept = torch.get_rng_state()
        made = type(policy)(policy.config)
        made.load_state_dict(policy.state_dict())
        torch.set_rng_state(kept)
        return made.float().eval()

    def measure(self, policy: Any, update: int, blocked: list[int] | None = None) -> None:
        """Look at the policy after an update, with random numbers of its own."""
        kept = random.getstate(), np.random.get_state(), torch.get_rng_state()
        try:
            with torch.no_grad():
                self.mirror.load_state_dict(policy.state_dict())
                self.rows.append({"update": update, **self._look(self.mirror, blocked or [])})
        finally:
            random.setstate(kept[0])
            np.random.set_state(kept[1])
            torch.set_rng_state(kept[2])

    def _look(self, policy: Any, blocked: list[int]) -> dict[str, Any]:
        moved = {name: weight.detach().float().clone() for name, weight in policy.named_parameters()}
        finite = all(bool(torch.isfinite(weight).all()) for weight in moved.values())
        change = self._distance(moved, self.start) / self.size
        step = self._distance(moved, self.last) / self.size
        self.last = moved
        if not finite:
            return {"finite": False}
        tokens, entropy, kl = self._sample(policy, blocked)
        said = [world.decode(row) for row in tokens]
        ended = [world.EOS in row for row in tokens]
        scores = [world.gold(self.reward, *one) for one in zip(self.prompts, said, ended, strict=True)]
        texts = [" ".join(words) for words in said]
        return {
            "finite": True,
            "reward": round(sum(scores) / len(scores), 5),
            "right": round(sum(map(world.right, self.prompts, said)) / len(said), 5),
            "ended": round(sum(ended) / len(ended), 5),
            "distinct": round(len(set(texts)) / len(texts), 5),
            "length": round(sum(map(len, said)) / len(said), 4),
            "entropy": round(entropy, 5),
            "kl": round(kl, 5),
            "weights": float(f"{change:.4g}"),
            "moved": float(f"{step:.4g}"),
            "samples": texts[:2],
        }

    @staticmethod
    def _distance(one: dict[str, Any], other: dict[str, Any]) -> float:
        return math.sqrt(sum(float((one[name] - other[name]).square().sum()) for name in one))

    def _sample(self, policy: Any, blocked: list[int]) -> tuple[list[list[int]], float, float]:
        """Responses, and their mean entropy and KL to the start, in nats per token."""
        prompts, batch = (self.ids != world.PAD).long(), len(self.ids)
        mask = torch.cat([prompts, torch.ones(batch, self.length, dtype=torch.long)], 1)
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        token, width, cache = self.ids, self.ids.shape[1], DynamicCache()
        alive, out = torch.ones(batch, 1, dtype=torch.bool), []
        for place in range(self.length):
            where = slice(0, width) if place == 0 else slice(width + place - 1, width + place)
            given = {"attention_mask": mask[:, : where.stop], "position_ids": positions[:, where]}
            logits = policy(input_ids=token, past_key_values=cache, use_cache=True, **given).logits[:, -1].float()
            upto = self._log_chances(logits, blocked).exp().cumsum(-1)
            token = torch.searchsorted(upto, self.noise[:, place : place + 1] * upto[:, -1:]).clamp(max=len(world.VOCABULARY) - 1)
            token = torch.where(alive, token, world.PAD)
            out.append(token)
            alive = alive & (token != world.EOS)
            if not bool(alive.any()):
                break
        said = torch.cat(out, 1)
        counted = (said != world.PAD).float()
        end = width + said.shape[1]
        whole = {
            "input_ids": torch.cat([self.ids, said], 1), "attention_mask": mask[:, :end], "position_ids": positions[:, :end],
            "use_cache": False,
        }  # fmt: skip
        logp, before = (model(**whole).logits[:, width - 1 : -1].float() for model in (policy, self.base))
        logp, before = self._log_chances(logp, blocked), before.log_softmax(-1)
        chance, total = logp.exp(), float(counted.sum().clamp(min=1))
        entropy = float((-(chance * logp.clamp(min=-100)).sum(-1) * counted).sum()) / total
        kl = float(((chance * (logp - before).clamp(-100, 100)).sum(-1) * counted).sum()) / total
        return said.tolist(), entropy, kl

    @staticmethod
    def _log_chances(logits: Any, blocked: list[int]) -> Any:
        logits[..., [world.PAD, *blocked]] = -1e9
        return logits.log_softmax(-1)
