"""Watching a live run: the monitor, its sinks and actions, and the decision to stop."""

from __future__ import annotations

from rldk.monitor.actions import Action, Command, Webhook
from rldk.monitor.guard import Guard
from rldk.monitor.monitor import Monitor
from rldk.monitor.sinks import Sink
from rldk.monitor.stopping import Stop, TrainingStopped

__all__ = ["Action", "Command", "Guard", "Monitor", "Sink", "Stop", "TrainingStopped", "Webhook"]
