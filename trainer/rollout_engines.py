"""How responses are sampled: in this process (`--rollout torch`), or by an engine with the policy's weights.

An engine has three methods: `sync` gives it the weights of the policy before each step, `respond` samples responses, `close` ends
it. The engines besides torch draw with random numbers of their own, seeded from the noise of the step. They may also round
differently: the difference of their log-probabilities from those of the training pass is logged as `mismatch_*`, and judged.
"""

from __future__ import annotations

import argparse
import atexit
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from lora import merged_state
from models import quiet_transformers
from rollout import Rollout, respond


class Engine(Protocol):
    """What the training loop needs of an engine."""

    def sync(self, policy: Any) -> None:
        """Take over the current weights of the policy."""

    def respond(self, batch: dict[str, Any], noise: Tensor, settings: Any) -> Rollout:
        """A response to each prompt, of at most as many tokens as the noise has columns."""

    def close(self) -> None:
        """Release what the engine holds."""


def make_engine(args: argparse.Namespace, policy: Any, tokenizer: Any, micro: int, processes: int) -> Engine:
    """The engine that --rollout names."""
    if args.rollout == "torch":
        return TorchEngine(policy, micro, tokenizer.pad_token_id)
    if args.rollout == "process":
        from rollout_process import ProcessEngine

        return ProcessEngine(tokenizer, micro)
    if processes > 1:
        raise ValueError(f"--rollout {args.rollout} works with one training process, got {processes}. Use --rollout torch.")
    import rollout_servers

    kind = {"vllm": rollout_servers.VllmEngine, "sglang": rollout_servers.SglangEngine}[args.rollout]
    return kind(tokenizer, args)


class TorchEngine:
    """The policy itself, in this process: nothing is synchronised, and a response does not depend on its batch."""

    def __init__(self, policy: Any, micro: int, pad: int) -> None:
        self.policy, self.micro, self.pad = policy, micro, pad

    def sync(self, policy: Any) -> None:
        self.policy = policy

    def respond(self, batch: dict[str, Any], noise: Tensor, settings: Any) -> Rollout:
        self.policy.eval()
        return respond(self.policy, batch, noise, self.micro, settings, self.pad)

    def close(self) -> None:
        pass


class WeightFolder:
    """A Hugging Face folder in memory (`/dev/shm`) for another process to load the weights from."""

    def __init__(self, tokenizer: Any) -> None:
        memory = Path("/dev/shm")
        parent = memory if os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
        _remove_left_over(parent)
        self.path = Path(tempfile.mkdtemp(prefix=f"rldk-rollout-{os.getpid()}-", dir=parent))
        atexit.register(self.close)
        tokenizer.save_pretrained(str(self.path))

    def write(self, policy: Any) -> str:
        """Write the weights, with adapters merged into them; returns the path."""
        state = merged_state(policy, policy.state_dict())
        with quiet_transformers():
            policy.save_pretrained(str(self.path), state_dict=state, safe_serialization=True, max_shard_size="10000GB")
        return str(self.path)

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def _remove_left_over(parent: Path) -> None:
    """Delete the folders of processes that were killed."""
    for folder in parent.glob("rldk-rollout-*-*"):
        owner = folder.name.split("-")[2]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists() and Path("/proc").exists():
            shutil.rmtree(folder, ignore_errors=True)


def prompts_of(batch: dict[str, Any]) -> list[list[int]]:
    """The prompts without their padding."""
    rows = zip(batch["input_ids"].tolist(), batch["attention_mask"].tolist(), strict=True)
    return [[token for token, real in zip(tokens, mask, strict=True) if real] for tokens, mask in rows]


def row_seeds(noise: Tensor) -> list[int]:
    """One seed per response, a function of seed, step and place in the batch."""
    return (noise[:, 0].double() * (2**31 - 1)).long().tolist()


def assembled(
    batch: dict[str, Any], said: list[Sequence[int]], logprobs: list[Sequence[float]], ends: Sequence[int], pad: int, device: Any
) -> Rollout:
    """A rollout from the tokens and log-probabilities of an engine; what comes after an end token is left out."""
    cut = [next((at + 1 for at, token in enumerate(row) if token in ends), len(row)) for row in said]
    width = max(cut)
    responses, mask = torch.full((len(said), width), pad), torch.zeros(len(said), width, dtype=torch.long)
    logp = torch.zeros(len(said), width)
    for row, length in enumerate(cut):
        responses[row, :length] = torch.tensor(list(said[row][:length]))
        logp[row, :length] = torch.tensor(list(logprobs[row][:length]))
        mask[row, :length] = 1
    ended = torch.tensor([row[length - 1] in ends for row, length in zip(said, cut, strict=True)])
    tokens = torch.cat([batch["input_ids"], responses], dim=1)
    attention = torch.cat([batch["attention_mask"], mask], dim=1)
    return Rollout(*(part.to(device) for part in (tokens, attention, responses, mask, logp, ended)))
