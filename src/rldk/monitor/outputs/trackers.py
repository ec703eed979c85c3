"""Experiment trackers: what the monitor measures and finds, in W&B, TensorBoard, MLflow or trackio."""

from __future__ import annotations

import os
import sys
from abc import abstractmethod
from collections.abc import Iterable
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rldk.core.anomaly import Anomaly
from rldk.core.errors import UsageError, require
from rldk.core.event import Event
from rldk.monitor.outputs.base import Output
from rldk.monitor.worker import Worker

if TYPE_CHECKING:
    from rldk.monitor.monitor import Monitor

__all__ = ["tracker_outputs"]

_MAX_WAITING = 1000  # calls
_CLOSE_SECONDS = 30.0


class TrackerOutput(Output):
    """Writes every metric of an event under `rldk/`, the health scores, and the number of alerts so far.

    A run that the training has already opened is used; without one, a new run is opened and closed again.
    """

    own_thread: ClassVar[bool] = False  # they have threads of their own; MLflow is given one below

    def start(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self.open(monitor.run_id, str(monitor.output_dir or "."))

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        values = {f"rldk/{name}": value for name, value in event.metrics.items() if isfinite(value)}
        now = self._monitor.record()
        scores = {"overall_health": now.overall_health_score, "training_stability": now.training_stability_score}
        values |= {f"rldk/score/{name}": score for name, score in scores.items() if score == score}
        values["rldk/alerts"] = float(len(self._monitor.anomalies))
        self.put(event.step, values)
        for anomaly in raised:
            self.say(anomaly)

    def alert(self, anomaly: Anomaly) -> None:
        self.say(anomaly)

    @abstractmethod
    def open(self, run_id: str, folder: str) -> None:
        """Find the run that is open, or open one."""

    @abstractmethod
    def put(self, step: int, values: dict[str, float]) -> None:
        """Log the values of a step."""

    def say(self, anomaly: Anomaly) -> None:
        """Report an anomaly in words, where the tracker has a place for them."""


class WandbOutput(TrackerOutput):
    """Weights & Biases; alerts are sent as its own alerts too. `WANDB_MODE=offline` is respected."""

    name: ClassVar[str] = "wandb"

    def open(self, run_id: str, folder: str) -> None:
        wandb: Any = require("wandb", extra="trackers", purpose="Logging to W&B")
        self._own = wandb.run is None
        if self._own:
            Path(folder).mkdir(parents=True, exist_ok=True)  # without it wandb writes to a temporary folder
        self.run: Any = wandb.init(name=run_id, dir=folder) if self._own else wandb.run
        self.run.define_metric("rldk/step")
        self.run.define_metric("rldk/*", step_metric="rldk/step")

    def put(self, step: int, values: dict[str, float]) -> None:
        self.run.log({**values, "rldk/step": step})  # no step of its own: the training's counter is not disturbed

    def say(self, anomaly: Anomaly) -> None:
        self.run.alert(f"{anomaly.severity}: {anomaly.type}", f"step {anomaly.step}: {anomaly.message} {anomaly.advice}")

    def close(self) -> None:
        if self._own:
            self.run.finish()


class TensorBoardOutput(TrackerOutput):
    """TensorBoard event files in a folder of their own."""

    name: ClassVar[str] = "tensorboard"

    def open(self, run_id: str, folder: str) -> None:
        require("tensorboard", extra="trackers", purpose="Logging to TensorBoard")
        board: Any = require("torch.utils.tensorboard", extra="trl", purpose="Logging to TensorBoard")
        self.writer: Any = board.SummaryWriter(f"{folder}/{run_id}_tensorboard")

    def put(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def say(self, anomaly: Anomaly) -> None:
        self.writer.add_text("rldk/alerts", f"{anomaly.severity} {anomaly.type}: {anomaly.message}", anomaly.step)

    def close(self) -> None:
        self.writer.close()


class MLflowOutput(TrackerOutput):
    """MLflow; alerts become tags of the run."""

    name: ClassVar[str] = "mlflow"

    def open(self, run_id: str, folder: str) -> None:
        self.mlflow: Any = require("mlflow", extra="trackers", purpose="Logging to MLflow")
        self._own = self.mlflow.active_run() is None
        if self._own:
            if not os.environ.get("MLFLOW_TRACKING_URI") and not self.mlflow.is_tracking_uri_set():
                Path(folder).mkdir(parents=True, exist_ok=True)
                self.mlflow.set_tracking_uri(f"sqlite:///{Path(folder).resolve() / 'mlflow.db'}")
            self.mlflow.start_run(run_name=run_id)

        self._run_id: str = self.mlflow.active_run().info.run_id
        self._client: Any = self.mlflow.MlflowClient()
        self._worker = Worker("rldk mlflow", _MAX_WAITING)  # its calls wait for a server

    def put(self, step: int, values: dict[str, float]) -> None:
        self._worker.submit(self._put, step, values)
        self._worker.raise_error()

    def _put(self, step: int, values: dict[str, float]) -> None:
        self.mlflow.log_metrics(values, step=step, run_id=self._run_id)

    def say(self, anomaly: Anomaly) -> None:
        said = f"{anomaly.severity} at step {anomaly.step}: {anomaly.message}"[:500]
        self._worker.submit(self._client.set_tag, self._run_id, f"rldk.{anomaly.type}", said)

    def close(self) -> None:
        self._worker.close(_CLOSE_SECONDS)
        self._worker.raise_error()
        if self._own:
            self.mlflow.end_run()


class TrackioOutput(TrackerOutput):
    """trackio, the local tracker of Hugging Face."""

    name: ClassVar[str] = "trackio"

    def open(self, run_id: str, folder: str) -> None:
        if "trackio" not in sys.modules:  # it reads this when it is imported
            os.environ.setdefault("TRACKIO_DIR", str(Path(folder).resolve() / "trackio"))
        self.trackio: Any = require("trackio", extra="trackers", purpose="Logging to trackio")
        context: Any = require("trackio.context_vars", extra="trackers", purpose="Logging to trackio")
        self._own = context.current_run.get() is None
        if self._own:
            self.trackio.init(project="rldk", name=run_id)

    def put(self, step: int, values: dict[str, float]) -> None:
        self.trackio.log(values, step=step)

    def say(self, anomaly: Anomaly) -> None:
        level = self.trackio.AlertLevel.ERROR if anomaly.severity == "critical" else self.trackio.AlertLevel.WARN
        self.trackio.alert(f"{anomaly.severity}: {anomaly.type}", f"step {anomaly.step}: {anomaly.message}", level)

    def close(self) -> None:
        if self._own:
            self.trackio.finish()


_BY_NAME: dict[str, type[TrackerOutput]] = {
    kind.name: kind for kind in (WandbOutput, TensorBoardOutput, MLflowOutput, TrackioOutput)
}  # fmt: skip


def tracker_outputs(names: str | Iterable[str]) -> list[Output]:
    """The outputs of these names, as in Hugging Face's `report_to`."""
    wanted = [names] if isinstance(names, str) else list(names)
    unknown = [name for name in wanted if name not in _BY_NAME]
    if unknown:
        raise UsageError(f"Expected trackers among {sorted(_BY_NAME)}, got {unknown[0]!r}.")
    return [_BY_NAME[name]() for name in wanted]
