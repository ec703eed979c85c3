"""Anything that writes TensorBoard files: `rldk.attach("tensorboard")`, for the writers of torch and of tensorboardX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rldk.core.errors import MissingDependencyError, is_installed
from rldk.integrations.hooks import Hook, Row

__all__ = ["FRAMEWORK", "WHOLE_ROWS", "hooks"]

FRAMEWORK = None
WHOLE_ROWS = False


def hooks() -> list[Hook]:
    """`SummaryWriter.add_scalar` and `add_scalars` of the packages that are installed."""
    found = []
    if is_installed("torch") and is_installed("tensorboard"):
        found += _of("torch.utils.tensorboard.writer")
    if is_installed("tensorboardX"):
        found += _of("tensorboardX.writer")
    if not found:
        needed = "torch with tensorboard, or tensorboardX"
        raise MissingDependencyError(f'rldk.attach("tensorboard") needs {needed}: pip install tensorboardX')
    return found


def _of(module: str) -> list[Hook]:
    return [
        Hook(module, "SummaryWriter.add_scalar", _scalar, _name),
        Hook(module, "SummaryWriter.add_scalars", _scalars, _name),
        Hook(module, "SummaryWriter.close", ends=True),
    ]


def _name(writer: Any) -> object:
    return Path(str(writer.get_logdir() if hasattr(writer, "get_logdir") else writer.logdir)).name


def _scalar(call: Mapping[str, Any]) -> Iterator[Row]:
    yield {call["tag"]: call["scalar_value"]}, call["global_step"]


def _scalars(call: Mapping[str, Any]) -> Iterator[Row]:
    main = call["main_tag"]
    yield {f"{main}/{tag}": value for tag, value in call["tag_scalar_dict"].items()}, call["global_step"]
