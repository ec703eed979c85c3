"""Free text with numbers in it: which number of a line is which metric, by the words before it.

`Epoch 1: mean total loss=0.55 | mean actor loss=-0.002`, `step=10 loss=0.1 reward=0.2`, `Step: 10/500, Loss: 0.5`,
`iter 10 | loss 0.1 | reward 0.2` and `step 10: loss 2.34, lr 1e-06` are all read. A line is a row only if the catalogue
knows what it measures: text is full of numbers that measure nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from rldk.adapters.formats.stretches import numbers_of
from rldk.adapters.formats.units import factor_of
from rldk.core.catalog import identify, is_known, is_measured
from rldk.core.catalog.axes import STEP_KEYS, is_axis
from rldk.core.catalog.metric import normalise

__all__ = ["Phrases", "phrases_of"]

_CUT = re.compile(r".*(?:[|,;:=\t(){}\[\]<>\"'*]| - |--|=>|->)", re.DOTALL)
_GLUED = re.compile(r"[^\s|,;:=()\[\]{}\"']+")
_LEVEL = re.compile(r"^(?:INFO|DEBUG|WARNING|WARN|ERROR|TRACE|NOTICE)\b\s*", re.IGNORECASE)
_NAME = re.compile(r"[^\W\d][\w/.@#%+ -]*")
_STEPS = frozenset(map(normalise, STEP_KEYS)) | {"steps", "it", "train_step", "optimizer_step", "batch", "episode"}
_TOTALS = frozenset({"total_steps", "max_steps", "num_steps", "epochs", "num_epochs", "total_epochs", "max_epochs"})
_MOST_WORDS = 5


@dataclass(frozen=True, slots=True)
class Phrases:
    """What the numbers of a line are, by position; `cells` are position, key and factor. A line may be no row."""

    step: int | None
    total: int | None
    epoch: int | None
    cells: tuple[tuple[int, str, float], ...]
    is_row: bool

    def __bool__(self) -> bool:
        return self.is_row

    @property
    def counts(self) -> bool:
        """Whether such a line says where it stands."""
        return self.step is not None or self.epoch is not None

    def columns(self, values: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        """The columns of several such lines, of whose values the last three are step, epoch and time."""
        found: dict[str, Any] = {"step": np.array(values[-3], dtype=np.float64)}
        for position, key, factor in self.cells:
            found[key] = numbers_of(values[position], factor)
        for name, cells in (("epoch", values[-2]), ("wall_time", values[-1])):
            if any(cell is not None for cell in cells):
                found[name] = np.array(cells, dtype=np.float64)
        return found


NOTHING = Phrases(None, None, None, (), False)


def phrases_of(words: tuple[str, ...]) -> Phrases:
    """Understand a line by its words.

    It is a row if it names two quantities that are measured at each step, or one beside a step or an epoch. Settings
    (a learning rate, a coefficient) do not count: that is how a configuration looks.
    """
    names = [_key(text, first=position == 0) for position, text in enumerate(words[:-1])]
    framework = identify([key for key, _ in names if key])
    step = _position(names, _STEPS)
    epoch = _position(names, frozenset({"epoch"}))
    total = step + 1 if step is not None and words[step + 1] == "/" and len(words) > step + 2 else None
    cells = []
    for position, (key, said) in enumerate(names):
        name = normalise(key)
        if not key or position == total or name in _STEPS or name in _TOTALS or name == "epoch" or is_axis(key):
            continue
        factor = factor_of(words[position + 1], key, framework)
        if factor is not None and (said or is_known(key)):
            cells.append((position, key, factor))
    measured = sum(is_measured(key) for _, key, _ in cells)
    placed = step is not None or epoch is not None
    return Phrases(step, total, epoch, tuple(cells), True) if measured + placed >= 2 and measured else NOTHING


def _position(names: list[tuple[str, bool]], wanted: frozenset[str]) -> int | None:
    """The first number with one of these names; one that `=` or `:` gives it goes before one that only follows it."""
    found = [position for position, (key, _) in enumerate(names) if key and normalise(key) in wanted]
    return next((position for position in found if names[position][1]), found[0] if found else None)


def _key(before: str, first: bool) -> tuple[str, bool]:
    """The name before a number, and whether `=` or `:` says that the number is its value."""
    text = before.rstrip()
    said = text.endswith(("=", ":"))
    if not said and text == before and not text.endswith(("[", "(", "#")):
        return "", False
    phrase = text.rstrip("=:[(#").rstrip().rstrip("\"'")
    if not first:
        phrase = _GLUED.sub("", phrase, count=1) if _GLUED.match(phrase) else phrase
    phrase = _LEVEL.sub("", _CUT.sub("", phrase).strip())
    if not _NAME.fullmatch(phrase):
        return "", False
    return _shortest_known(phrase, said), said


@lru_cache(maxsize=4096)
def _shortest_known(phrase: str, said: bool) -> str:
    """The phrase, without words before it that are no part of the name: `info step` is the step."""
    words = phrase.split()
    for start in range(len(words)):
        name = " ".join(words[start:])
        if normalise(name) in _STEPS or normalise(name) == "epoch" or is_known(name) or is_axis(name):
            return name if start == 0 or said else ""
    return phrase if said and len(words) <= _MOST_WORDS else ""
