"""The form of a line of free text: which of its numbers is which metric, by the words before it.

`Epoch 1: mean total loss=0.55 | mean actor loss=-0.002`, `step=10 loss=0.1 reward=0.2`, `Step: 10/500, Loss: 0.5`,
`iter 10 | loss 0.1 | reward 0.2` and `step 10: loss 2.34, lr 1e-06` are all read. A line is a row only if the catalogue
knows what it measures: text is full of numbers that measure nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from rldk.core.catalog import identify, is_known, is_measured, locate
from rldk.core.catalog.axes import STEP_KEYS, is_axis
from rldk.core.catalog.guess import guess
from rldk.core.catalog.metric import normalise
from rldk.ingest.formats.number_lines import factor_of, numbers_of, parse_number

__all__ = ["TextForm", "form_of_text"]

_CUT = re.compile(r".*(?:[|,;:=\t(){}\[\]<>\"'*•·▶→✨]| - |--|=>|->)", re.DOTALL)
_GLUED = re.compile(r"[^\s|,;:=()\[\]{}\"']+")
_LEVEL = re.compile(r"^(?:INFO|DEBUG|WARNING|WARN|ERROR|TRACE|NOTICE)\b\s*", re.IGNORECASE)
_NAME = re.compile(r"[^\W\d][\w/.@#%+ -]*")
_STEPS = frozenset(map(normalise, STEP_KEYS)) | {"steps", "it", "train_step", "optimizer_step", "batch", "episode"}
_TOTALS = frozenset({"total_steps", "max_steps", "num_steps", "epochs", "num_epochs", "total_epochs", "max_epochs"})
_NOT_VALUES = frozenset({"cuda", "cpu", "npu"})  # of `device='cuda:0'`
_CHANGES = frozenset({"max", "min", "maximum", "minimum", "std", "best", "worst", "target", "initial", "kl"})
"""Words that belong to the name after them: `Max return` is not the return, and `KL ratio` no ratio of probabilities."""
_BEFORE_STEP = frozenset({"end", "of", "finished", "completed", "done", "after", "with", "this"})
"""Words before a step that is over: `end of step 3`, `finished step 3`."""
_WRAPPER = re.compile(r"(?:(?:np|numpy|torch)\.)?(?:tensor|array)\((?=\[$)|(?<=[:=])\s*[\"']$")  # also the quote of `'kl': '0.1'`
_MOST_WORDS = 5
_MOST_NUMBERS = 2_000  # of a line that may be a row


@dataclass(frozen=True, slots=True)
class TextForm:
    """What the numbers of a line are, by position; `cells` are position, key and factor. A line may not be a row.

    `lists` are numbers in brackets under one name, such as `rewards=[0, 1]`, of which the mean counts. `shares` are positions
    of numbers that are given as a part of the next one, such as `correct=3/8`.
    """

    step: int | None
    total: int | None
    epoch: int | None
    cells: tuple[tuple[int, str, float], ...]
    is_row: bool
    lists: tuple[tuple[str, tuple[int, ...]], ...] = ()
    shares: tuple[int, ...] = ()

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
            if position in self.shares:
                found[key] = np.array([_share(*row) for row in zip(values[position], values[position + 1], strict=True)])
        for key, positions in self.lists:
            found[key] = np.array([_mean(row) for row in zip(*(values[position] for position in positions), strict=True)])
        for name, cells in (("epoch", values[-2]), ("wall_time", values[-1])):
            if any(cell is not None for cell in cells):
                found[name] = np.array(cells, dtype=np.float64)
        return found


def _mean(texts: tuple[str, ...]) -> float:
    numbers = [number for text in texts if (number := parse_number(text)) is not None]
    return sum(numbers) / len(numbers) if numbers else math.nan


def _share(part: str, whole: str) -> float:
    count, of = parse_number(part), parse_number(whole)
    return count / of if count is not None and of else math.nan


def form_of_text(words: tuple[str, ...]) -> TextForm:
    """Understand a line by its words.

    It is a row if it names two quantities that are measured at each step, or one together with a step or an epoch. Settings
    (a learning rate, a coefficient) do not count: that is how a configuration looks.
    """
    if len(words) > _MOST_NUMBERS:
        return TextForm(None, None, None, (), False)
    names = [_key(text, first=position == 0) for position, text in enumerate(words[:-1])]
    framework = identify([key for key, _ in names if key])
    counted = [("", False) if words[position + 1][:1].isalpha() else name for position, name in enumerate(names)]
    step = _position(counted, _STEPS)  # `update=216.6s` is a time
    epoch = _position(names, frozenset({"epoch"}))
    if step is None and epoch is None and _counts_alone(words):
        step = 0
    total = step + 1 if step is not None and words[step + 1] == "/" and len(words) > step + 2 else None
    lists = {positions[0]: (key, positions) for key, positions in _lists(names, words)}
    cells = []
    for position, (key, said) in enumerate(names):
        name = normalise(key)
        counts = name in _STEPS or name in _TOTALS or name == "epoch"
        if not key or position == total or position in lists or counts or is_axis(key):
            continue
        factor = factor_of(words[position + 1], key, framework)
        if factor is not None and (said or is_known(key) or _measures(key)) and name not in _NOT_VALUES:
            cells.append((position, key, factor))
    measured = sum(_measures(key) for _, key, _ in cells) + len(lists)
    placed = step is not None or epoch is not None
    shares = tuple(position for position, key, _ in cells if words[position + 1] == "/" and _is_share(key))
    return TextForm(step, total, epoch, tuple(cells), measured + placed >= 2 and measured > 0, tuple(lists.values()), shares)


def _is_share(key: str) -> bool:
    place = locate(key)
    return place is not None and place.metric.endswith(("accuracy", "_frac"))


def _measures(key: str) -> bool:
    """Whether a key names something that is measured, by the catalogue or by its parts: `avg_rew` says what it is."""
    return is_measured(key) or ("_" in key and guess(key) is not None)


def _counts_alone(words: tuple[str, ...]) -> bool:
    """Whether a line begins with its count in brackets: `[0004/0500] reward …`, `(3/500) reward …`."""
    return len(words) > 3 and words[0].strip() in ("[", "(") and words[1] == "/" and words[2][:1] in ("]", ")")


def _lists(names: list[tuple[str, bool]], words: tuple[str, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The lists of numbers under the name of a metric that is a mean, and the positions of their numbers."""
    for position, (key, _) in enumerate(names):
        if not key or not words[position].rstrip().endswith(("[", "(")):
            continue
        last = position
        while last + 1 < len(names) and words[last + 1].strip() in (",", ""):
            last += 1
        place = locate(key)
        is_mean = place is not None and place.metric.endswith(("_mean", "accuracy"))
        if last > position and is_mean and words[last + 1].lstrip()[:1] in ("]", ")"):
            yield key, tuple(range(position, last + 1))


def _position(names: list[tuple[str, bool]], wanted: frozenset[str]) -> int | None:
    """The first number with one of these names; one that `=` or `:` gives it goes before one that only follows it."""
    found = [position for position, (key, _) in enumerate(names) if key and normalise(key) in wanted]
    return next((position for position in found if names[position][1]), found[0] if found else None)


@lru_cache(maxsize=4096)
def _key(before: str, first: bool) -> tuple[str, bool]:
    """The name before a number, and whether `=` or `:` says that the number is its value."""
    text = _WRAPPER.sub("", before.rstrip())
    said = text.endswith(("=", ":", "=[", ": [", "=(", ": ("))
    if not said and text == before and not text.endswith(("[", "(", "#")):
        return "", False
    phrase = text.rstrip("=:[(# ").rstrip("\"'")
    if not first:
        phrase = _GLUED.sub("", phrase, count=1) if _GLUED.match(phrase) else phrase
    cut = _CUT.match(phrase)
    phrase = _LEVEL.sub("", phrase[cut.end() if cut else 0 :].strip())
    if not _NAME.fullmatch(phrase):
        return "", False
    return _shortest_known(phrase, said), said


@lru_cache(maxsize=4096)
def _shortest_known(phrase: str, said: bool) -> str:
    """The phrase, without the words before it that are not part of the name: `info step` is the step."""
    words = phrase.split()
    for start in range(len(words)):
        name = " ".join(words[start:])
        if normalise(name) in _STEPS and _BEFORE_STEP.issuperset(word.lower() for word in words[:start]):
            return name
        if normalise(name) in _STEPS or normalise(name) == "epoch" or is_known(name) or is_axis(name):
            return name if start == 0 or said else ""
        if words[start].lower() in _CHANGES:
            break
    return phrase if (said and len(words) <= _MOST_WORDS) or (len(words) == 1 and _measures(phrase)) else ""
