"""Experiment trackers, to which `rldk.attach` attaches for anything that logs through them: W&B, MLflow, TensorBoard, trackio."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rldk.core.catalog.axes import has_step
from rldk.integrations.hooks import Hook, Row, Target

__all__ = ["TRACKERS"]


class _StepCount:
    """Steps for trackers that count the calls: counts those of each run that have no step."""

    def __init__(self) -> None:
        self._next: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def step(self, run: Any, row: Mapping[str, Any], given: Any, commit: bool = True) -> Any:
        """The given step; without one, the run's count of calls, unless the row names its step.

        With `commit`, the next call is another step.
        """
        if given is not None or has_step(row):
            return given
        step = self._next.get(run, getattr(run, "starting_step", 0))
        self._next[run] = step + commit
        return step


_count = _StepCount()


def _wandb(call: Mapping[str, Any]) -> Iterator[Row]:
    yield call["data"], _count.step(call["self"], call["data"], call["step"], call["commit"] is not False)


def _bind_wandb_log() -> None:
    """`wandb.log` of a run that has begun is bound to the method as it was: bind it again."""
    wandb: Any = sys.modules.get("wandb")
    if getattr(wandb, "run", None) is not None:
        wandb.log = wandb.run.log


def _mlflow_metric(call: Mapping[str, Any]) -> Iterator[Row]:
    yield {call["key"]: call["value"]}, call["step"]


def _mlflow_batch(call: Mapping[str, Any]) -> Iterator[Row]:
    for metric in call["metrics"]:
        yield {metric.key: metric.value}, metric.step


def _mlflow_run(call: Mapping[str, Any]) -> str:
    return str(call["run_id"])


def _tensorboard(module: str) -> list[Hook]:
    return [
        Hook(module, "SummaryWriter.add_scalar", _scalar, _writer_name),
        Hook(module, "SummaryWriter.add_scalars", _scalars, _writer_name),
        Hook(module, "SummaryWriter.close", ends=True),
    ]


def _writer_name(writer: Any) -> object:
    return Path(str(writer.get_logdir() if hasattr(writer, "get_logdir") else writer.logdir)).name


def _scalar(call: Mapping[str, Any]) -> Iterator[Row]:
    yield {call["tag"]: call["scalar_value"]}, call["global_step"]


def _scalars(call: Mapping[str, Any]) -> Iterator[Row]:
    main = call["main_tag"]
    yield {f"{main}/{tag}": value for tag, value in call["tag_scalar_dict"].items()}, call["global_step"]


def _trackio(call: Mapping[str, Any]) -> Iterator[Row]:
    yield call["metrics"], _count.step(call["self"], call["metrics"], call["step"])


TRACKERS: dict[str, Target] = {
    "wandb": Target(  # `wandb.log` calls `Run.log`; a run with mode="disabled" does not, one with mode="offline" does
        "wandb", "wandb",
        [
            Hook("wandb.sdk.wandb_run", "Run.log", _wandb, lambda run: run.id),
            Hook("wandb.sdk.wandb_run", "Run.finish", ends=True),
        ],
        refresh=_bind_wandb_log,
    ),
    "mlflow": Target(  # the functions of `mlflow` use the client too, each time another one
        "mlflow", "mlflow-skinny",
        [
            Hook("mlflow.tracking.client", "MlflowClient.log_metric", _mlflow_metric, run=_mlflow_run),
            Hook("mlflow.tracking.client", "MlflowClient.log_batch", _mlflow_batch, run=_mlflow_run),
        ],
    ),
    "tensorboard": Target(
        "tensorboard|tensorboardX", "tensorboard",
        [*_tensorboard("torch.utils.tensorboard.writer"), *_tensorboard("tensorboardX.writer")],
    ),
    "trackio": Target(  # `trackio.log` calls `Run.log`
        "trackio", "trackio",
        [Hook("trackio.run", "Run.log", _trackio, lambda run: run.name), Hook("trackio.run", "Run.finish", ends=True)],
    ),
}  # fmt: skip
