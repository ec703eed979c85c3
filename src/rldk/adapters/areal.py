"""AReaL's metrics as JSON lines."""

from __future__ import annotations

from typing import ClassVar

from rldk.adapters.jsonlines import JsonLinesAdapter

__all__ = ["ARealAdapter"]


class ARealAdapter(JsonLinesAdapter):
    """Reads `ppo_actor/task_reward/avg`, `ppo_actor/update/…`: the suffix says which statistic it is."""

    name: ClassVar[str] = "areal"
    title: ClassVar[str] = "AReaL (JSON lines)"
    framework: ClassVar[str | None] = "areal"
