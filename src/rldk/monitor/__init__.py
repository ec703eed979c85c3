"""Watching a live run: the monitor, its outputs, and the decision to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rldk.monitor.guard import Guard
from rldk.monitor.monitor import Monitor
from rldk.monitor.outputs import Command, Notification, Output, Webhook
from rldk.monitor.stopping import Stop, TrainingStopped

if TYPE_CHECKING:
    from rldk.monitor.outputs.services import Desktop, Discord, Email, Ntfy, Slack, Teams, notifications

__all__ = [
    "Command", "Desktop", "Discord", "Email", "Guard", "Monitor", "Notification", "Ntfy", "Output", "Slack", "Stop", "Teams",
    "TrainingStopped", "Webhook", "notifications",
]  # fmt: skip

_SERVICES = frozenset({"Desktop", "Discord", "Email", "Ntfy", "Slack", "Teams", "notifications"})


def __getattr__(name: str) -> Any:
    """The services are imported when they are asked for: they need mail and encryption, which training does not."""
    if name in _SERVICES:
        from rldk.monitor.outputs import services

        return getattr(services, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
