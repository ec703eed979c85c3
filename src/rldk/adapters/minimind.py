"""MiniMind's console lines: `Epoch:[1/1](100/9751), Reward: 0.1, KL_ref: 0.0012, …`, in all their generations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rldk.adapters.base import Adapter
from rldk.adapters.formats import console, epoch_lines
from rldk.adapters.formats.stretches import Line, fill_lines, iter_lines
from rldk.runs.table import TableBuilder

__all__ = ["EpochLinesAdapter", "MiniMindAdapter"]


class EpochLinesAdapter(Adapter):
    """Reads lines that begin with `Epoch:[e/E](n/N)`; a subclass says which are its own by their keys."""

    def can_handle(self) -> bool:
        self.why = "no line `Epoch:[e/E](n/N) key: value …`"
        if not console.is_console(self.source):
            return False
        keys = next(filter(None, map(epoch_lines.keys_of, console.iter_head(self.source, epoch_lines.MARK))), None)
        if keys is None:
            return False
        self.why = f"lines `Epoch:[e/E](n/N)` with {', '.join(keys[:4])}"
        return self.owns(keys)

    def owns(self, keys: list[str]) -> bool:
        """Whether lines with these keys are this adapter's to read."""
        raise NotImplementedError

    def read(self) -> Iterator[Mapping[str, Any]]:
        return iter_lines(self._lines())

    def fill(self, builder: TableBuilder) -> None:
        fill_lines(builder, self._lines())

    def _lines(self) -> Iterator[Line]:
        return epoch_lines.lines_of(self.source, self.framework, self.problems, self.notes, self.progress)


class MiniMindAdapter(EpochLinesAdapter):
    """Reads the console of MiniMind's PPO, GRPO, DPO, SFT and pretraining scripts, and of those derived from them."""

    name: ClassVar[str] = "minimind"
    title: ClassVar[str] = "MiniMind console output"
    framework: ClassVar[str | None] = "minimind"

    def owns(self, keys: list[str]) -> bool:
        return True
