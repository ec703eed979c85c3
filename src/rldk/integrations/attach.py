"""`rldk.attach("wandb")`, and the same for processes that can be configured by their environment only."""

from __future__ import annotations

import logging
import os
from typing import Any

from rldk.core.errors import MissingDependencyError, UsageError, need
from rldk.core.text import did_you_mean
from rldk.integrations.frameworks import FRAMEWORKS
from rldk.integrations.hooks import Attachment, Target
from rldk.integrations.trackers import TRACKERS

__all__ = ["TARGETS", "attach", "attach_from_environment", "options_from_environment"]

_log = logging.getLogger("rldk")

TARGETS = {**TRACKERS, **FRAMEWORKS}
"""What can be attached to."""

_OPTIONS = {"RLDK_OUTPUT_DIR": "output_dir", "RLDK_RUN_ID": "run_id", "RLDK_STOP_ON": "stop_on"}

_attached: dict[str, Attachment] = {}


def attach(name: str, **options: Any) -> Attachment:
    """Watch everything that is logged through a tracker or a framework's logger in this process.

    What is not imported yet is watched as soon as it is.

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
    target = _target(name)
    if (found := _attached.get(name)) is not None and found.is_attached:
        if options and options != found.options:
            _log.warning("rldk is already attached to %s with the options of the first call; detach() to change them.", name)
        return found
    need(target.package, target.pip, f"rldk.attach({name!r})")
    _attached[name] = Attachment(name, target, options)
    return _attached[name]


def attach_from_environment(name: str) -> None:
    """Attach with options from the environment. Nothing happens if the package is not installed; other errors are warnings."""
    _target(name)
    try:
        attach(name, **options_from_environment())
    except MissingDependencyError:
        return
    except Exception as error:  # noqa: BLE001  in the middle of somebody's import: nothing of ours may break it
        _log.warning("rldk could not attach to %s; training continues: %s", name, error, exc_info=error)


def options_from_environment() -> dict[str, Any]:
    """Options from the environment, for processes that can be configured in no other way."""
    return {option: value for name, option in _OPTIONS.items() if (value := os.environ.get(name))}


def _target(name: str) -> Target:
    if name not in TARGETS:
        raise UsageError(f"Expected one of {sorted(TARGETS)}, got {name!r}.{did_you_mean(name, TARGETS)}")
    return TARGETS[name]
