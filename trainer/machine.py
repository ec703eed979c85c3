"""The machine: accelerate, threads and seeds."""

from __future__ import annotations

import argparse
import atexit
import os
import random

import numpy as np
import torch
import torch.distributed as dist
from accelerate import Accelerator
from accelerate.utils import DistributedType, GradientAccumulationPlugin


def make_accelerator(args: argparse.Namespace, accumulation_steps: int | None = None) -> Accelerator:
    """One or several processes, on CPU or GPU, as started by `torchrun` or `accelerate launch`."""
    kind = torch.device(args.device).type
    if kind == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"--device {args.device}: torch sees no GPU here. Use --device cpu.")
    if kind == "cuda" and ":" in args.device and "LOCAL_RANK" not in os.environ:
        torch.cuda.set_device(args.device)
    precision = {"float32": "no", "bfloat16": "bf16", "float16": "fp16"}[args.dtype]
    plugin = GradientAccumulationPlugin(num_steps=accumulation_steps or args.accumulation_steps, sync_with_dataloader=False)
    accelerator = Accelerator(cpu=kind == "cpu", mixed_precision=precision, gradient_accumulation_plugin=plugin)
    if accelerator.distributed_type not in (DistributedType.NO, DistributedType.MULTI_CPU, DistributedType.MULTI_GPU):
        raise ValueError(
            f"accelerate is configured for {accelerator.distributed_type.value}. To shard a model, use torchrun and --fsdp."
        )
    seed_everything(args.seed)
    return accelerator


GROUPS: list[dist.ProcessGroup] = []  # that this process has left, until it ends


def leave(accelerator: Accelerator) -> None:
    """Wait for the other processes: one that exits while another still sends would end that one too.

    The group is kept until the wrapped models are gone. If a model is its last owner, torch takes the group apart with the
    GIL held, while a thread of the group holds the lock and waits for the GIL: the process never ends (pytorch issue 56297).
    """
    if dist.is_initialized():
        GROUPS.append(dist.group.WORLD)
        atexit.register(GROUPS.clear)
    accelerator.wait_for_everyone()
    accelerator.end_training()


SMALL = 10_000_000  # parameters up to which a second thread costs more than it gains


def spare_threads(parameters: int) -> None:
    """Use one CPU thread for a small model."""
    if parameters < SMALL:
        torch.set_num_threads(1)


def set_threads(args: argparse.Namespace, device: torch.device, parameters: int) -> str:
    """Choose the CPU threads of torch; returns a sentence about an automatic choice."""
    if device.type != "cpu":
        return ""
    if args.num_threads:
        torch.set_num_threads(args.num_threads)
        return ""
    if "OMP_NUM_THREADS" in os.environ:
        return ""
    cores = max(1, len(os.sched_getaffinity(0)) // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    threads = 1 if parameters < SMALL else cores
    torch.set_num_threads(threads)
    why = "a model of this size gains nothing from more" if threads < cores else "all that this process may use"
    return f"CPU threads: {threads}, {why}; --num_threads sets another number"


def seed_everything(seed: int, step: int = 0, rank: int = 0) -> None:
    """Seed Python, numpy and torch for one step of one process.

    Called at the beginning of every step, it makes all randomness a function of seed, step and rank: a resumed run needs no
    stored state to continue as if it had not been stopped.
    """
    mixed = int(np.random.SeedSequence((seed & 0xFFFFFFFF, step, rank)).generate_state(1)[0])
    random.seed(mixed)
    np.random.seed(mixed)
    torch.manual_seed(mixed)
