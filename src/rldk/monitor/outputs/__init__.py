"""Outputs: where a monitor puts what it sees, and what it does when something is raised."""

from __future__ import annotations

from rldk.monitor.outputs.base import FileOutput, Output
from rldk.monitor.outputs.event_log import EventLog
from rldk.monitor.outputs.json_files import Alerts, Analysis, ConfigFile, FinalReport
from rldk.monitor.outputs.metrics_csv import AnalysisCsv, MetricsCsv
from rldk.monitor.outputs.terminal import Terminal
from rldk.monitor.outputs.trackers import tracker_outputs

__all__ = [
    "Alerts",
    "Analysis",
    "AnalysisCsv",
    "ConfigFile",
    "EventLog",
    "FileOutput",
    "FinalReport",
    "MetricsCsv",
    "Output",
    "Terminal",
    "tracker_outputs",
]
