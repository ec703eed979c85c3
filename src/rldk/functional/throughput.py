"""How fast a model trains, and how much of the machine that is."""

from __future__ import annotations

from math import isfinite

__all__ = ["PEAK_FLOPS", "calculate_mfu", "flops_per_token", "peak_flops", "rl_step_flops"]

PEAK_FLOPS: dict[str, float] = {
    "b200": 2250e12,
    "b100": 1750e12,
    "h200": 989e12,
    "h100 nvl": 835e12,
    "h100 pcie": 756e12,
    "h100": 989e12,
    "h800": 989e12,
    "h20": 148e12,
    "gh200": 989e12,
    "l40s": 362e12,
    "l40": 181e12,
    "l4": 121e12,
    "a100": 312e12,
    "a800": 312e12,
    "a10g": 70e12,
    "a10": 125e12,
    "a40": 149.7e12,
    "a6000": 154.8e12,
    "a30": 165e12,
    "v100": 125e12,
    "t4": 65e12,
    "rtx 5090": 209.5e12,
    "rtx 4090": 165.2e12,
    "rtx 4080": 97.5e12,
    "rtx 3090": 71e12,
    "rtx 3080": 59.5e12,
    "mi355x": 2500e12,
    "mi325x": 1307e12,
    "mi300x": 1307e12,
    "mi250x": 383e12,
}
"""Dense 16-bit matrix FLOP/s that the makers state for one device, without sparsity; the most specific name first.

A device that is not in the table has no MFU. Nor has a CPU: its peak depends on clock, cores and instructions in use."""


def flops_per_token(trainable_params: int) -> float:
    """FLOPs to train on one token: two for each parameter forward, four backward. Attention over the context is not counted."""
    if trainable_params < 0:
        raise ValueError(f"Expected `trainable_params` to be at least 0, got {trainable_params}.")
    return 6.0 * trainable_params


def rl_step_flops(
    tokens: int, policy: int, critic: int = 0, reference: int = 0, reward: int = 0, forwards: int = 3, critic_forwards: int = 1,
    epochs: float = 1.0,
) -> float:  # fmt: skip
    """FLOPs of one step of PPO or GRPO: generation, scoring and all epochs of updates. Attention over the context is not counted.

    Args:
        tokens: prompts and responses together.
        policy, critic, reference, reward: parameters of each model, 0 for one that does not exist.
        forwards: passes of the policy that are not trained on: generation, the log-probabilities before and after.
        critic_forwards: the same of the critic.
        epochs: how often each token is trained on.
    """
    scored = 2.0 * (forwards * policy + critic_forwards * critic + reference + reward)
    return tokens * (scored + epochs * (flops_per_token(policy) + flops_per_token(critic)))


def peak_flops(device: str) -> float | None:
    """The peak of a device by its name (`NVIDIA A100-SXM4-80GB`), or `None` where it is not known.

    A name is found as whole words: an `NVIDIA L40S` is not an L4, and `A1000` not an A100.
    """
    words = f" {device.lower().replace('-', ' ').replace('_', ' ')} "
    return next((peak for name, peak in PEAK_FLOPS.items() if f" {name} " in words), None)


def calculate_mfu(model_flops_per_token: float, tokens_per_sec: float, device: object, n_devices: int = 1) -> float | None:
    """Model FLOPs utilisation in percent, or `None` where the peak of the device is not known.

    Args:
        model_flops_per_token: see `flops_per_token`.
        tokens_per_sec: tokens of all devices together.
        device: the name of the device, its peak in FLOP/s, or a `torch.device`, whose name is asked from torch.
        n_devices: how many devices made those tokens.
    """
    if n_devices < 1:
        raise ValueError(f"Expected `n_devices` to be at least 1, got {n_devices}.")
    peak = float(device) if isinstance(device, (int, float)) else peak_flops(_name_of(device))
    if peak is None or not peak > 0.0 or not isfinite(tokens_per_sec):
        return None
    return 100.0 * model_flops_per_token * tokens_per_sec / (peak * n_devices)


def _name_of(device: object) -> str:
    """The name of a device; for `cuda:0` the driver is asked."""
    text = str(device)
    if text.split(":")[0] != "cuda":
        return text
    import torch

    return torch.cuda.get_device_name(text) if torch.cuda.is_available() else text
