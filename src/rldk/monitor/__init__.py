"""Watching a live run: the monitor, its outputs, and the decision to stop."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rldk.monitor.guard import Guard
from rldk.monitor.monitor import Monitor
from rldk.monitor.outputs import Output
from rldk.monitor.stopping import Stop, TrainingStopped

if TYPE_CHECKING:
    from rldk.monitor.outputs.notifications import Command, Notification
    from rldk.monitor.outputs.services import Desktop, Discord, Email, Ntfy, Slack, Teams, Webhook, notifications

__all__ = [
    "Command", "Desktop", "Discord", "Email", "Guard", "Monitor", "Notification", "Ntfy", "Output", "Slack", "Stop", "Teams",
    "TrainingStopped", "Webhook", "notifications",
]  # fmt: skip

_MODULES = {
    **dict.fromkeys(("Command", "Notification"), "notifications"),
    **dict.fromkeys(("Desktop", "Discord", "Email", "Ntfy", "Slack", "Teams", "Webhook", "notifications"), "services"),
}


def __getattr__(name: str) -> Any:
    """What notifies is imported when it is asked for: it needs mail and encryption, which training does not."""
    if name in _MODULES:
        return getattr(import_module(f"rldk.monitor.outputs.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
