"""The console of this project's own trainer: `Epoch:[1/1](100/500) actor_loss:0.23 … tokens/s:12345 MFU:0.35% …`."""

from __future__ import annotations

from typing import ClassVar

from rldk.adapters.minimind import EpochLinesAdapter

__all__ = ["TrainerConsoleAdapter"]

_OWN = frozenset({"tokens/s", "MFU", "grad_norm_actor"})


class TrainerConsoleAdapter(EpochLinesAdapter):
    """Reads the lines that the five stages of `trainer/` print; known by the throughput that no other script prints."""

    name: ClassVar[str] = "trainer"
    title: ClassVar[str] = "console output of rldk's trainer"
    framework: ClassVar[str | None] = "trainer"

    def owns(self, keys: list[str]) -> bool:
        return not _OWN.isdisjoint(keys)
