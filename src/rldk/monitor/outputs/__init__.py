"""Outputs: where a monitor puts what it sees, and what it does when something is raised."""

from __future__ import annotations

import os
from collections.abc import Container, Sequence

from rldk.monitor.outputs.base import FileOutput, Output
from rldk.monitor.outputs.event_log import EventLog
from rldk.monitor.outputs.json_files import Alerts, Analysis, ConfigFile, FinalReport
from rldk.monitor.outputs.metrics_csv import AnalysisCsv, MetricsCsv
from rldk.monitor.outputs.terminal import Terminal
from rldk.monitor.outputs.trackers import tracker_outputs
from rldk.monitor.run_files import file_of

__all__ = [
    "Analysis", "AnalysisCsv", "EventLog", "FileOutput", "MetricsCsv", "Output", "Terminal", "tracker_outputs", "writers_of",
]  # fmt: skip

_WRITTEN = ("metrics", "alerts", "final_report")


def writers_of(
    folder: str | os.PathLike[str] | None, run_id: str, files: Container[str] = _WRITTEN, columns: Sequence[str] = ()
) -> list[Output]:
    """The outputs that write these files of a run besides its event log; none without a folder."""
    if folder is None:
        return []
    writers: dict[str, list[Output]] = {
        "metrics": [MetricsCsv(file_of(folder, run_id, "metrics.csv"), columns)],
        "alerts": [Alerts(file_of(folder, run_id, "alerts.json"))],
        "final_report": [
            FinalReport(file_of(folder, run_id, "final_report.json")), ConfigFile(file_of(folder, run_id, "config.json")),
        ],
    }  # fmt: skip
    return [writer for name, own in writers.items() if name in files for writer in own]
