"""Anything that logs to MLflow: `rldk.attach("mlflow")`, for `mlflow.log_metric`, `log_metrics` and the client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rldk.integrations.hooks import Hook, Row

__all__ = ["FRAMEWORK", "WHOLE_ROWS", "hooks"]

FRAMEWORK = None
WHOLE_ROWS = False


def hooks() -> list[Hook]:
    """The client's methods. The functions of `mlflow` use them too, each time with another client."""
    place = "mlflow.tracking.client"
    return [
        Hook(place, "MlflowClient.log_metric", _metric, run=lambda call: str(call["run_id"])),
        Hook(place, "MlflowClient.log_batch", _batch, run=lambda call: str(call["run_id"])),
    ]


def _metric(call: Mapping[str, Any]) -> Iterator[Row]:
    yield {call["key"]: call["value"]}, call["step"]


def _batch(call: Mapping[str, Any]) -> Iterator[Row]:
    for metric in call["metrics"]:
        yield {metric.key: metric.value}, metric.step
