"""What the run was started with, in a file of its own."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.core.files import write_json
from rldk.core.run_config import RunConfig
from rldk.monitor.sinks.base import Sink

__all__ = ["ConfigFile"]


class ConfigFile(Sink):
    """Writes the settings that the first event holds: by canonical name (`knobs`), as they are (`raw`), and rldk's own."""

    name: ClassVar[str] = "config"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @cached_property
    def key(self) -> str:
        return f"{self.name} {self.path.absolute()}"

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        settings = event.model_info.get("config")
        if isinstance(settings, dict):
            config = RunConfig.of(settings)
            write_json(self.path, {"run_id": event.run_id, "knobs": dict(config), "raw": config.raw, "rldk": config.rldk})
