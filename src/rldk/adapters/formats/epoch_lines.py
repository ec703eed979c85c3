"""Console lines that begin with `Epoch:[1/2](100/9751)`: MiniMind's form, and that of the trainer grown out of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rldk.adapters.formats.console import split_stamp, strip_colours
from rldk.adapters.formats.numbers import Forms, ends_whole, parse_count, parse_number, split_numbers
from rldk.adapters.formats.units import factor_of
from rldk.adapters.source import Source
from rldk.log.blocks import Progress
from rldk.log.problems import LineProblems

__all__ = ["MARK", "form_of", "iter_rows", "keys_of"]

MARK = re.compile(rb"[Ee]poch\s*(?::|\xef\xbc\x9a)?\s*[\[(]?\d")
_WIDE = str.maketrans("：，；（）［］％　", ":,;()[]% ")
_BEFORE_EPOCH = re.compile(r"epoch\s*:?\s*[\[(]?$", re.IGNORECASE)
_BEFORE_STEP = re.compile(r"\]?\s*\(")
_STEP_BY_NAME = re.compile(r"\s*,\s*step\s*:\s*", re.IGNORECASE)
_OWN = frozenset({"KL_ref", "Avg Response Len", "Actor LR", "Critic LR"})
_CUT = re.compile(r"[,;|:\])]\s*|^\S+\s+")
_NAME = re.compile(r"[A-Za-z_][\w/ .()-]*")


@dataclass(frozen=True, slots=True)
class Form:
    """Which number of a line is what. `epoch` and `step` are positions; `cells` are positions, keys and factors."""

    epoch: int
    step: int
    cells: tuple[tuple[int, str, float], ...]


def iter_rows(
    source: Source, problems: LineProblems, notes: list[str], progress: Progress | None = None
) -> Iterator[dict[str, Any]]:
    """The rows, each with its step counted over all epochs, and with what is not a row passed over in silence."""
    forms = Forms(form_of)
    for number, line in source.lines(problems, progress):
        if b"poch" not in line:
            continue
        time, text = split_stamp(_narrow(line))
        values, words = split_numbers(text)
        form = forms.get(words)
        if form is None:
            continue
        cells = form.cells
        if number == problems.unterminated and not ends_whole(words[-1]):
            cells = tuple(cell for cell in cells if cell[0] != len(values) - 1)
            notes.append(f"line {number} has no newline: its last value may be cut off and was left out")
        if not cells:
            problems.add(number, "no value that is sure to be whole")
            continue
        epoch, step, total = map(parse_count, (values[form.epoch], *values[form.step : form.step + 2]))
        if epoch is None or step is None or total is None:
            problems.add(number, "an epoch or a step that is no whole number")
            continue
        row: dict[str, Any] = {"step": max(0, epoch - 1) * total + step, "epoch": epoch}
        for position, key, factor in cells:
            if (value := parse_number(values[position])) is not None:
                row[key] = value * factor if factor != 1.0 else value
        if time is not None:
            row["wall_time"] = time
        yield row


def _narrow(line: bytes) -> str:
    """The line without colours, its full-width punctuation made plain, and only what was last written into it."""
    text = strip_colours(line).rsplit(b"\r", 1)[-1].decode("utf-8", "replace")
    return text if text.isascii() else text.translate(_WIDE)


def form_of(words: tuple[str, ...]) -> Form | None:
    """What the numbers between these words are; `None` where they are no row."""
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
        factor = factor_of(words[position + 1], key) if key else None
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
    """The keys of a line, to tell whose it is; empty where it is no row."""
    _, text = split_stamp(_narrow(line))
    form = form_of(split_numbers(text)[1])
    return [] if form is None else [key for _, key, _ in form.cells]
