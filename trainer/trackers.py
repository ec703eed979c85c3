"""Where the metrics of a run are logged besides the console: W&B, TensorBoard, MLflow, trackio, or nowhere.

All have `log(metrics, step)` and `close()`, so that the training loop needs no branches. `Tracker` itself does nothing.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

NAMES = ("wandb", "tensorboard", "mlflow", "trackio")


class Tracker:
    """The null object, and the base of the others."""

    name = "none"

    def log(self, metrics: dict[str, float], step: int) -> None:
        """Log the numbers of a step."""

    def close(self) -> None:
        """Write what is left."""


class WandbTracker(Tracker):
    """Weights & Biases; offline unless WANDB_MODE or an API key in the environment says otherwise."""

    name = "wandb"

    def __init__(self, folder: Path, project: str, run_id: str, config: dict) -> None:
        import wandb

        mode = os.environ.get("WANDB_MODE") or ("online" if os.environ.get("WANDB_API_KEY") else "offline")
        settings = wandb.Settings(silent=True, console="off", x_disable_stats=True)
        self.run = wandb.init(
            project=project, id=run_id, name=run_id, dir=str(folder), config=config, mode=mode, resume="allow", settings=settings
        )

    def log(self, metrics: dict[str, float], step: int) -> None:
        self.run.log(metrics, step=step)

    def close(self) -> None:
        self.run.finish()


class TensorBoardTracker(Tracker):
    name = "tensorboard"

    def __init__(self, folder: Path, project: str, run_id: str, config: dict, resume_step: int | None = None) -> None:
        from torch.utils.tensorboard import SummaryWriter

        purge = None if resume_step is None else resume_step + 1  # these steps will be written again
        self.writer = SummaryWriter(str(folder / "tensorboard" / run_id), purge_step=purge, flush_secs=10)
        self.writer.add_text("config", "\n".join(f"    {key}: {value}" for key, value in config.items()))

    def log(self, metrics: dict[str, float], step: int) -> None:
        for key, value in metrics.items():
            self.writer.add_scalar(key, value, step)

    def close(self) -> None:
        self.writer.close()


class MlflowTracker(Tracker):
    name = "mlflow"

    def __init__(self, folder: Path, project: str, run_id: str, config: dict) -> None:
        import logging

        for noisy in ("mlflow.store.db.utils", "alembic.runtime.migration"):
            logging.getLogger(noisy).setLevel(logging.WARNING)
        from mlflow.entities import Metric, Param, RunTag
        from mlflow.tracking import MlflowClient

        self._metric = Metric
        store = os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{(folder / 'mlflow.db').resolve()}"
        self.client = MlflowClient(store)
        experiment = self.client.get_experiment_by_name(project)
        number = experiment.experiment_id if experiment else self.client.create_experiment(project)
        self.run = self.client.create_run(number, run_name=run_id).info.run_id
        params = [Param(key, str(value)[:500]) for key, value in config.items()]
        self.client.log_batch(self.run, params=params, tags=[RunTag("rldk.run_id", run_id)])

    def log(self, metrics: dict[str, float], step: int) -> None:
        import time

        now = int(time.time() * 1000)
        self.client.log_batch(self.run, [self._metric(key, value, now, step) for key, value in metrics.items()])

    def close(self) -> None:
        self.client.set_terminated(self.run)


class TrackioTracker(Tracker):
    name = "trackio"

    def __init__(self, folder: Path, project: str, run_id: str, config: dict) -> None:
        os.environ.setdefault("TRACKIO_DIR", str((folder / "trackio").resolve()))
        import contextlib
        import io

        import trackio

        self.trackio = trackio
        with contextlib.redirect_stdout(io.StringIO()):  # its start-up messages are long
            trackio.init(project=project, name=run_id, config=config, resume="allow", embed=False, auto_log_gpu=False)

    def log(self, metrics: dict[str, float], step: int) -> None:
        self.trackio.log(metrics, step=step)

    def close(self) -> None:
        import contextlib
        import io

        with contextlib.redirect_stdout(io.StringIO()):
            self.trackio.finish()


class Guarded(Tracker):
    """A tracker that may fail without ending the training: the failure is reported once, then the tracker is disabled."""

    def __init__(self, tracker: Tracker) -> None:
        self.tracker = tracker
        self.name = tracker.name

    def log(self, metrics: dict[str, float], step: int) -> None:
        self._safely(lambda: self.tracker.log(metrics, step))

    def close(self) -> None:
        self._safely(self.tracker.close)

    def _safely(self, act) -> None:
        try:
            act()
        except Exception:  # noqa: BLE001 - the one guard between a tracker and the training
            print(f"The tracker {self.name} failed and has been disabled:", file=sys.stderr)
            traceback.print_exc()
            self.tracker = Tracker()


class Several(Tracker):
    """All trackers that were asked for."""

    def __init__(self, trackers: list[Tracker]) -> None:
        self.trackers = trackers

    def log(self, metrics: dict[str, float], step: int) -> None:
        for tracker in self.trackers:
            tracker.log(metrics, step)

    def close(self) -> None:
        for tracker in self.trackers:
            tracker.close()


def make_trackers(names: list[str], folder: Path, project: str, run_id: str, config: dict, resume_step: int | None) -> Tracker:
    """The trackers of these names; one that is not installed is an error at once, not after an hour."""
    made: list[Tracker] = []
    for name in names:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            if name == "wandb":
                made.append(WandbTracker(folder, project, run_id, config))
            elif name == "tensorboard":
                made.append(TensorBoardTracker(folder, project, run_id, config, resume_step))
            elif name == "mlflow":
                made.append(MlflowTracker(folder, project, run_id, config))
            elif name == "trackio":
                made.append(TrackioTracker(folder, project, run_id, config))
            else:
                raise ValueError(f"Expected `--report_to` to name some of {list(NAMES)}, got {name!r}.")
        except ImportError as error:
            need = f"--report_to {name} needs a package that is not installed: pip install 'rldk[trackers]' ({error})"
            raise SystemExit(need) from None
    return Several([Guarded(tracker) for tracker in made])
