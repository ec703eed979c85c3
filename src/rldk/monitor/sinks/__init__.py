"""Sinks: where a monitor puts what it sees, one kind a file."""

from __future__ import annotations

from rldk.monitor.sinks.alerts import Alerts
from rldk.monitor.sinks.analysis import Analysis
from rldk.monitor.sinks.base import Sink
from rldk.monitor.sinks.config_file import ConfigFile
from rldk.monitor.sinks.event_log import EventLog
from rldk.monitor.sinks.final_report import FinalReport
from rldk.monitor.sinks.metrics_csv import MetricsCsv
from rldk.monitor.sinks.mirrors import MLflowMirror, TensorBoardMirror, TrackioMirror, WandbMirror, mirror
from rldk.monitor.sinks.terminal import Terminal

__all__ = [
    "Alerts",
    "Analysis",
    "ConfigFile",
    "EventLog",
    "FinalReport",
    "MLflowMirror",
    "MetricsCsv",
    "Sink",
    "TensorBoardMirror",
    "Terminal",
    "TrackioMirror",
    "WandbMirror",
    "mirror",
]
