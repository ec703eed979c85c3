"""After each save: how the checkpoint compares with the one before it and with the first."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rldk.integrations.trl.metrics import CheckpointMetrics, fill
from rldk.monitor.outputs import FileOutput
from rldk.monitor.run_files import file_of

if TYPE_CHECKING:
    from rldk.checkpoints import CheckpointHistory
    from rldk.monitor import Monitor

__all__ = ["CheckpointSummary", "LiveFacts"]

LiveFacts = Callable[[], dict[str, Any]]


class CheckpointSummary(FileOutput):
    """Writes `R_checkpoint_summary.csv`, one row per checkpoint, and raises an alert for a damaged one.

    `latest` is the last row as a record, and `facts` what the training reported at that checkpoint.

    Args:
        folder: where the summary goes.
        saved_in: where the trainer saves, as `checkpoint-N`.
        live: returns gradient flow and memory use when a checkpoint is saved.
    """

    name: ClassVar[str] = "checkpoint summary"

    def __init__(self, folder: str | os.PathLike[str], saved_in: str | os.PathLike[str], live: LiveFacts = dict) -> None:
        super().__init__(folder)
        self.live = live
        self.facts: dict[str, Any] = {}
        self.saved_in = Path(saved_in)
        self.latest = CheckpointMetrics()

    @cached_property
    def history(self) -> CheckpointHistory:
        """The checkpoints so far. The module is imported with the first one, since many runs save none."""
        from rldk.checkpoints import CheckpointHistory

        return CheckpointHistory()

    def start(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self.summary = file_of(self.path, monitor.run_id, "checkpoint_summary.csv")
        if monitor.resume_step and self.summary.exists():
            from rldk.checkpoints.summary import keep_up_to

            self.history.resume(self.saved_in, monitor.resume_step)
            keep_up_to(self.summary, monitor.resume_step)
        else:
            self.summary.unlink(missing_ok=True)

    def save(self, step: int) -> None:
        from rldk.checkpoints import add_to_summary

        report = self.history.add(self.saved_in / f"checkpoint-{step}", step)
        self.facts = self._monitor.guard.call("the probe of gradient flow and memory", self.live) or {}
        report.live = self.facts
        self.latest = fill(CheckpointMetrics, report.row())
        add_to_summary(self.summary, report)
        for problem in report.problems:
            if problem.severity == "critical":
                kind = f"checkpoint_{problem.type}"
                self._monitor.alert(step, kind, problem.message, problem.severity, problem.advice, lasting=True)

    def close(self) -> None:
        if "history" in self.__dict__:
            self.history.close()
