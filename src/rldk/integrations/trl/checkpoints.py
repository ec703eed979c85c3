"""After each save: what the checkpoint is like beside the one before it and the first."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rldk.checkpoints import CheckpointHistory, add_to_summary
from rldk.checkpoints.summary import keep_up_to
from rldk.integrations.trl.metrics import CheckpointMetrics, fill
from rldk.monitor.naming import file_of
from rldk.monitor.sinks import Sink

if TYPE_CHECKING:
    from rldk.monitor import Monitor

__all__ = ["Checkpoints"]


class Checkpoints(Sink):
    """Writes `R_checkpoint_summary.csv`, a row a checkpoint, and raises an alert for one that is damaged.

    `latest` is the last row as a record.

    Args:
        folder: where the summary goes.
        saved_in: where the trainer saves, as `checkpoint-N`.
    """

    name: ClassVar[str] = "checkpoint summary"

    def __init__(self, folder: str | os.PathLike[str], saved_in: str | os.PathLike[str]) -> None:
        self.folder, self.saved_in = Path(folder), Path(saved_in)
        self.history = CheckpointHistory()
        self.latest = CheckpointMetrics()

    @cached_property
    def key(self) -> str:
        return f"{self.name} {self.folder.absolute()}"

    def start(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self.path = file_of(self.folder, monitor.run_id, "checkpoint_summary.csv")
        if monitor.resume_step and self.path.exists():
            self.history.resume(self.saved_in, monitor.resume_step)
            keep_up_to(self.path, monitor.resume_step)
        else:
            self.path.unlink(missing_ok=True)

    def save(self, step: int) -> None:
        report = self.history.add(self.saved_in / f"checkpoint-{step}", step)
        self.latest = fill(CheckpointMetrics, report.row())
        self.path.parent.mkdir(parents=True, exist_ok=True)
        add_to_summary(self.path, report)
        for problem in report.problems:
            if problem.severity == "critical":
                kind = f"checkpoint_{problem.type}"
                self._monitor.alert(step, kind, problem.message, problem.severity, problem.advice, lasting=True)

    def close(self) -> None:
        self.history.close()
