"""Notifications on the desktop of this machine."""

from __future__ import annotations

import shutil
import subprocess
from typing import Any, ClassVar

from rldk.core.errors import UsageError
from rldk.monitor.outputs.incident_messages import IncidentNotification, Message

__all__ = ["Desktop"]


class Desktop(IncidentNotification):
    """The desktop of this machine: `notify-send` on Linux, `osascript` on macOS."""

    name: ClassVar[str] = "desktop"

    def __init__(self, severity: str = "critical", **options: Any) -> None:
        super().__init__(severity, **options)
        if shutil.which("notify-send") is None and shutil.which("osascript") is None:
            raise UsageError("Showing notifications needs `notify-send` (Debian: apt install libnotify-bin) or `osascript`.")

    def post(self, message: Message, earlier: Any) -> Any:
        body = message.text.partition("\n")[2] or message.headline
        if program := shutil.which("notify-send"):
            urgency = "critical" if message.severity == "critical" and message.state != "over" else "normal"
            words = [program, "--app-name=rldk", f"--urgency={urgency}", "--", message.headline, body]
        else:
            script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"
            words = ["osascript", "-e", script, message.headline, body]
        subprocess.run(words, check=True, timeout=self.timeout, capture_output=True)
