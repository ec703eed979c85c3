"""`rldk.attach("wandb")`, and the table of what rldk can attach to."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any

from rldk.core.errors import UsageError, need
from rldk.core.text import did_you_mean
from rldk.integrations.hooks import Attachment

__all__ = ["TARGETS", "attach"]

_log = logging.getLogger("rldk")

TARGETS: dict[str, tuple[str, str]] = {
    "wandb": ("wandb", "wandb"),
    "mlflow": ("mlflow", "mlflow-skinny"),
    "tensorboard": ("tensorboard|tensorboardX", "tensorboard"),
    "trackio": ("trackio", "trackio"),
    "verl": ("verl", "verl"),
    "skyrl": ("skyrl", "skyrl"),
    "openrlhf": ("openrlhf", "openrlhf"),
    "areal": ("areal", "areal"),
    "tinker": ("tinker_cookbook", "tinker-cookbook"),
    "art": ("art", "openpipe-art"),
    "nemo_rl": ("nemo_rl", "git+https://github.com/NVIDIA-NeMo/RL"),
    "prime_rl": ("prime_rl", "git+https://github.com/PrimeIntellect-ai/prime-rl"),
}
"""What can be attached to: the package it needs (of `a|b` one is enough), and how pip installs that.

Its hooks are in the module of the same name.
"""

_attached: dict[str, Attachment] = {}


def attach(name: str, **options: Any) -> Attachment:
    """Watch everything that is logged through a tracker or a framework's logger in this process.

    Args:
        name: `wandb`, `mlflow`, `tensorboard` or `trackio` for anything that logs through them, or a framework of `TARGETS`.
        options: those of `rldk.integrations.rows.RowLog`: `output_dir`, `run_id`, `stop_on`, `terminal`, `limits` …

    Returns:
        the attachment; `detach()` restores everything. Attaching twice gives the same one.

    Raises:
        UsageError: an unknown name, or options that cannot be used.
        MissingDependencyError: the package is not installed; the message has the pip command.

    Example:
        >>> rldk.attach("wandb", output_dir="rldk_logs")
        >>> wandb.log({"reward": 0.5, "kl": 0.01}, step=1)
    """
    if name not in TARGETS:
        raise UsageError(f"Expected one of {sorted(TARGETS)}, got {name!r}.{did_you_mean(name, TARGETS)}")
    if (found := _attached.get(name)) is not None and found.is_attached:
        if options and options != found.options:
            _log.warning("rldk is already attached to %s with the options of the first call; detach() to change them.", name)
        return found
    package, pip = TARGETS[name]
    need(package, pip, f"rldk.attach({name!r})")
    module = import_module(f"rldk.integrations.{name}")
    refresh = getattr(module, "refresh", lambda: None)
    _attached[name] = Attachment(name, module.hooks(), module.FRAMEWORK, module.WHOLE_ROWS, options, refresh)
    return _attached[name]
