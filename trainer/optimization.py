"""Optimizers, learning rates and gradients."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from typing import Any

import torch
from accelerate import Accelerator


def make_optimizer(
    model: torch.nn.Module, learning_rate: float, weight_decay: float = 0.0, betas=(0.9, 0.999), kind: str = "adamw"
) -> torch.optim.Optimizer:
    """AdamW in one fused pass, or with moments of 8 bits; norms and biases are not decayed."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if kind == "adamw_8bit":
        return _adamw_of_8_bits()(groups, lr=learning_rate, betas=betas)
    return torch.optim.AdamW(groups, lr=learning_rate, betas=betas, fused=True)


def _adamw_of_8_bits() -> Any:
    try:
        from bitsandbytes.optim import AdamW8bit
    except ImportError:
        raise ValueError("--optimizer adamw_8bit needs a package: pip install bitsandbytes") from None
    return AdamW8bit


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


def clip_gradients(accelerator: Accelerator, optimizer: Any, parameters: Iterable[torch.nn.Parameter], largest: float) -> float:
    """The gradient norm of one optimizer's parameters before clipping; with 0 nothing is clipped."""
    parameters = list(parameters)
    if accelerator.scaler is not None:  # of this optimizer alone: a second unscale of the same one is an error
        accelerator.scaler.unscale_(optimizer)
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
    if largest:
        torch.nn.utils.clip_grads_with_norm_(parameters, largest, norm)
    return float(whole(norm))


def step_optimizers(accelerator: Accelerator, optimizers: Iterable[Any]) -> None:
    """Step each optimizer once. A loss scaler skips those whose gradients are not finite, and adapts once."""
    for optimizer in optimizers:
        if accelerator.scaler is None:
            optimizer.step()
        else:
            accelerator.scaler.step(optimizer)
    if accelerator.scaler is not None:
        accelerator.scaler.update()


def plain_optimizer(optimizer: Any) -> Any:
    """The optimizer that steps: torch's own, out of accelerate's.

    For a loop that steps only after the last pass of an update; it does not check that. Accelerate's would also adapt the loss
    scaler at each of several optimizers, and look through the gradients and the disk at each update.
    """
    return getattr(optimizer, "optimizer", optimizer)


def whole(value: torch.Tensor) -> torch.Tensor:
    """A number computed from sharded tensors, summed over the processes."""
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def all_finite(*values: float) -> bool:
    return all(math.isfinite(value) for value in values)
