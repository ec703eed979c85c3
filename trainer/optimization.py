"""Optimizers, learning rates and gradients."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType


def make_optimizer(
    model: torch.nn.Module, learning_rate: float, weight_decay: float = 0.0, betas=(0.9, 0.999)
) -> torch.optim.AdamW:
    """AdamW in one fused pass; norms and biases are not decayed."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=learning_rate, betas=betas, fused=True)


def learning_rate_at(step: int, total: int, args: argparse.Namespace, peak: float) -> float:
    """The learning rate of a step (from 0): up to the peak in --warmup_steps, then as --lr_schedule says."""
    if step < args.warmup_steps:
        return peak * (step + 1) / args.warmup_steps
    done = (step - args.warmup_steps) / max(1, total - args.warmup_steps)
    if args.lr_schedule == "linear":
        return peak * max(0.0, 1.0 - done)
    if args.lr_schedule == "cosine":
        return peak * (0.1 + 0.45 * (1.0 + math.cos(math.pi * min(1.0, done))))  # down to a tenth
    return peak


def set_learning_rate(optimizer: torch.optim.Optimizer, value: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = value


def has_whole_gradients(accelerator: Accelerator) -> bool:
    """Whether a process has all gradients and its optimizer is torch's own: then accelerate has nothing to add to either.

    What it would do is not free: at each update it scans the gradients for sharded ones, and the disk for optional packages.
    """
    return accelerator.distributed_type in (DistributedType.NO, DistributedType.MULTI_CPU, DistributedType.MULTI_GPU)


def clip_gradients(accelerator: Accelerator, optimizer: Any, parameters: Iterable[torch.nn.Parameter], largest: float) -> float:
    """The gradient norm of one optimizer's parameters before clipping; with 0 nothing is clipped. Non-finite where any is."""
    parameters = list(parameters)
    if not has_whole_gradients(accelerator):
        return float(accelerator.clip_grad_norm_(parameters, largest or math.inf))
    if accelerator.scaler is not None:  # of this optimizer alone: a second unscale of the same one is an error
        accelerator.scaler.unscale_(optimizer)
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    if largest:
        torch.nn.utils.clip_grads_with_norm_(parameters, largest, norm)
    return float(norm)


def step_optimizers(accelerator: Accelerator, optimizers: Iterable[Any]) -> None:
    """Step each optimizer once. A loss scaler leaves out those whose gradients are not finite, and adapts once for all."""
    for optimizer in optimizers:
        if accelerator.scaler is None or not has_whole_gradients(accelerator):
            optimizer.step()
        else:
            accelerator.scaler.step(optimizer)
    if accelerator.scaler is not None and has_whole_gradients(accelerator):
        accelerator.scaler.update()


def plain_optimizer(accelerator: Accelerator, optimizer: Any) -> Any:
    """The optimizer that steps: torch's own, unless sharding needs accelerate's around it.

    It is for a loop that steps only after the last pass of an update: whether that is now, it does not ask. Accelerate's
    would also adapt the loss scaler at each of several optimizers.
    """
    return optimizer.optimizer if has_whole_gradients(accelerator) else optimizer


def all_finite(*values: float) -> bool:
    return all(math.isfinite(value) for value in values)
