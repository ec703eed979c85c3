"""Console lines that begin with `Epoch:[1/2](100/9751)`: those of MiniMind, and of this project's trainer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from rldk.ingest.adapter import Adapter
from rldk.ingest.formats import console
from rldk.ingest.formats.console import plain_line, split_stamp
from rldk.ingest.formats.number_lines import Forms, Line, complete_cells, factor_of, fill_lines, numbers_of, split_numbers
from rldk.runs.table import TableBuilder

__all__ = ["MiniMindAdapter", "TrainerConsoleAdapter"]

_MARK = re.compile(rb"[Ee]poch\s{0,20}(?::|\xef\xbc\x9a)?\s{0,20}[\[(]?\d")
_WIDE = str.maketrans("：，；（）［］％　", ":,;()[]% ")
_BEFORE_EPOCH = re.compile(r"epoch\s{0,20}:?\s{0,20}[\[(]?$", re.IGNORECASE)
_BEFORE_STEP = re.compile(r"\]?\s*\(")
_STEP_BY_NAME = re.compile(r"\s*,\s*step\s*:\s*", re.IGNORECASE)
_OWN = frozenset({"KL_ref", "Avg Response Len", "Actor LR", "Critic LR"})
_CUT = re.compile(r"[,;|:\])]\s*|^\S+\s+")
_NAME = re.compile(r"[A-Za-z_][\w/ .()-]*")
_MAX_BYTES = 1 << 16  # no row is longer


@dataclass(frozen=True, slots=True)
class Form:
    """Which number of a line is what. `epoch` and `step` are positions; `cells` are positions, keys and factors.

    The step counts over all epochs. After the numbers comes the time stamp.
    """

    epoch: int
    step: int
    cells: tuple[tuple[int, str, float], ...]

    def columns(self, values: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        epoch, step, total = (np.array(values[at], dtype=np.float64) for at in (self.epoch, self.step, self.step + 1))
        with np.errstate(invalid="ignore"):  # a total of 400 digits is infinite
            found: dict[str, Any] = {"step": (epoch - 1).clip(0) * total + step, "epoch": epoch}
        for position, key, factor in self.cells:
            found[key] = numbers_of(values[position], factor)
        if any(time is not None for time in values[-1]):
            found["wall_time"] = np.array(values[-1], dtype=np.float64)
        return found


def _narrow(line: bytes) -> str:
    """The line without colours, its full-width punctuation made plain, and only what was last written into it."""
    text = plain_line(line).rstrip(b"\r").rsplit(b"\r", 1)[-1][:_MAX_BYTES].decode("utf-8", "replace")
    return text if text.isascii() else text.translate(_WIDE)


def form_of(words: tuple[str, ...], framework: str | None = None) -> Form | None:
    """What the numbers between these words are; `None` where they are not a row."""
    epoch = next((position for position, text in enumerate(words[:-1]) if _BEFORE_EPOCH.search(text)), None)
    if epoch is None:
        return None
    step = epoch + (2 if words[epoch + 1] == "/" else 1)
    if len(words) < step + 3 or words[step + 1] != "/":
        return None
    by_name = _STEP_BY_NAME.fullmatch(words[step])
    if not by_name and not _BEFORE_STEP.fullmatch(words[step]):
        return None
    cells = []
    for position in range(step + 2, len(words) - 1):
        key = _key(words[position])
        factor = factor_of(words[position + 1], key, framework) if key else None
        if factor is not None:
            cells.append((position, key, factor))
    if by_name and _OWN.isdisjoint(key for _, key, _ in cells):
        return None  # `Epoch: 1, Step: 5/10` is anybody's
    return Form(epoch, step, tuple(cells)) if cells else None


def _key(text: str) -> str:
    """The name before a number, in `) actor_loss:`, `% epoch_Time:` or `, Avg Response Len: `; empty for none."""
    name = text.rstrip()
    if not name.endswith((":", "=")):
        return ""
    name = _CUT.split(name[:-1].rstrip())[-1].strip()
    return name if _NAME.fullmatch(name) else ""


def keys_of(line: bytes) -> list[str]:
    """The keys of a line, to tell whose it is; empty where it is not a row."""
    _, text = split_stamp(_narrow(line))
    form = form_of(split_numbers(text)[1])
    return [] if form is None else [key for _, key, _ in form.cells]


class EpochLinesAdapter(Adapter):
    """Reads lines that begin with `Epoch:[e/E](n/N)`."""

    max_rows: ClassVar[int] = console.MAX_ROWS
    signature: ClassVar[frozenset[str]] = frozenset()
    """Keys by one of which a subclass knows its own lines; without any, all such lines are its own."""

    def can_handle(self) -> bool:
        self.why = "no line `Epoch:[e/E](n/N) key: value …`"
        if not console.is_console(self.source):
            return False
        keys = next(filter(None, map(keys_of, console.iter_head(self.source, _MARK))), None)
        if keys is None:
            return False
        self.why = f"lines `Epoch:[e/E](n/N)` with {', '.join(keys[:4])}"
        return not self.signature or not self.signature.isdisjoint(keys)

    def fill(self, builder: TableBuilder) -> None:
        fill_lines(builder, self._lines())

    def _lines(self) -> Iterator[Line]:
        """The lines that are rows; others are passed over in silence."""
        forms = Forms(partial(form_of, framework=self.framework))
        problems = self.problems
        problems.last_row = 0
        for number, line in self.source.lines(problems, self.progress):
            if b"poch" not in line:
                continue
            time, text = split_stamp(_narrow(line))
            values, words, form = forms.read(text)
            if form is None or not all(values[at].isdecimal() for at in (form.epoch, form.step, form.step + 1)):
                continue
            problems.last_row = number
            if number == problems.unterminated:
                cells = complete_cells(form.cells, words, problems, self.notes)
                if not cells:
                    continue
                form = Form(form.epoch, form.step, cells)
            yield form, [*values, time]


class MiniMindAdapter(EpochLinesAdapter):
    """Reads the console of MiniMind's PPO, GRPO, DPO, SFT and pretraining scripts, and of those derived from them."""

    name: ClassVar[str] = "minimind"
    title: ClassVar[str] = "MiniMind console output"
    framework: str | None = "minimind"


class TrainerConsoleAdapter(EpochLinesAdapter):
    """Reads the lines that the five stages of `trainer/` print; known by the throughput that no other script prints."""

    name: ClassVar[str] = "trainer"
    title: ClassVar[str] = "console output of rldk's trainer"
    framework: str | None = "trainer"
    signature: ClassVar[frozenset[str]] = frozenset({"tokens/s", "MFU", "grad_norm_actor"})
