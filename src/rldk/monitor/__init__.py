"""Watching a live run: the monitor, its outputs, and the decision to stop."""

from __future__ import annotations

from rldk.monitor.guard import Guard
from rldk.monitor.monitor import Monitor
from rldk.monitor.outputs import Command, Notification, Output, Webhook
from rldk.monitor.stopping import Stop, TrainingStopped

__all__ = ["Command", "Guard", "Monitor", "Notification", "Output", "Stop", "TrainingStopped", "Webhook"]
