"""Rows of free text that are spread over lines: a line with the step, and lines with a value each, before or after it.

Where no line has a step, a row begins with the key that comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from rldk.core.catalog import is_measured
from rldk.ingest.formats.number_lines import Line
from rldk.ingest.formats.text_form import TextForm

__all__ = ["Blocks", "SpreadRows", "find_blocks", "loose_keys"]

_LOOKED_AT = 600
_FEWEST = 3
_FEWEST_ROUNDS = 8
_MOST_VALUES = 12
_MOST_HELD = 10_000


@dataclass(frozen=True, slots=True)
class Blocks:
    """The keys whose values stand on lines of their own, and whether these lines come before the line with their step.

    `opening` is the key that begins a row in a text without steps.
    """

    keys: frozenset[str]
    before: bool
    opening: str = ""


def loose_keys(form: TextForm, words: tuple[str, ...]) -> list[str]:
    """The metrics of a line that holds nothing but named values and no step; none where it is another kind of line."""
    named = len(form.cells) + sum(len(positions) for _, positions in form.lists)
    if form.counts or not named or named != len(words) - 1 or named > _MOST_VALUES:
        return []
    return [key for key in (*(key for _, key, _ in form.cells), *(key for key, _ in form.lists)) if is_measured(key)]


def find_blocks(lines: Iterable[tuple[tuple[str, ...], TextForm]]) -> Blocks | None:
    """Whether values regularly stand on lines of their own beside lines with a step; `None` where they do not.

    A key belongs to the blocks if it comes at least three times, and with at least every second step. In a text without steps
    two keys or more must come eight times.
    """
    counts: dict[str, int] = {}
    own: set[str] = set()
    steps = 0
    order: list[str] = []
    for kind, keys in _kinds(islice(lines, _LOOKED_AT)):
        if kind == "step":
            steps += 1
            own.update(keys)
        else:
            for key in keys:
                counts[key] = counts.get(key, 0) + 1
        order.append(kind)
    opening = next(iter(counts), "")
    if not steps and counts.get(opening, 0) >= _FEWEST_ROUNDS:
        kept = frozenset(key for key, count in counts.items() if count >= 0.5 * counts[opening])
        return Blocks(kept, before=False, opening=opening) if len(kept) > 1 else None
    kept = frozenset(key for key, count in counts.items() if key not in own and count >= max(_FEWEST, 0.5 * steps))
    if steps < _FEWEST or not kept:
        return None
    return Blocks(kept, before=order[0] == "value" and order[-1] == "step")


def _kinds(lines: Iterable[tuple[tuple[str, ...], TextForm]]) -> Iterator[tuple[str, list[str]]]:
    for words, form in lines:
        if form.step is not None:
            yield "step", [key for _, key, _ in form.cells]
        elif keys := loose_keys(form, words):
            yield "value", keys


class SpreadRows:
    """Values on lines of their own, each with the step of the line after or before it; rows of one step are merged later."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._step: int | None = None
        self._held: list[tuple[TextForm, list[Any], float | None]] = []
        self._forms: dict[TextForm, TextForm] = {}

    def opens(self, form: TextForm, words: tuple[str, ...]) -> bool:
        """Whether a row begins with this line, in a text without steps."""
        return bool(self._blocks.opening) and self._blocks.opening in loose_keys(form, words)

    def takes(self, form: TextForm, words: tuple[str, ...], values: list[str], time: float | None) -> bool:
        """Whether a line is one of values; it is held until its step is known."""
        if form.step is not None or self._blocks.keys.isdisjoint(loose_keys(form, words)):
            return False
        if form not in self._forms:
            if len(self._forms) >= _MOST_HELD:
                self._forms.clear()
            cells = tuple(cell for cell in form.cells if cell[1] in self._blocks.keys)
            self._forms[form] = replace(form, cells=cells, is_row=True)
        if len(self._held) < _MOST_HELD:
            self._held.append((self._forms[form], list(values), time))
        return True

    def ready(self) -> Iterator[Line]:
        """The lines whose step is known: none where the step comes after them, or has not come yet."""
        if not self._blocks.before and self._step is not None:
            yield from self._release(self._step)

    def at(self, step: int) -> Iterator[Line]:
        """Take the step of a line; the lines held before it are given out if they belong to it."""
        self._step = step
        if self._blocks.before:
            yield from self._release(step)
        self._held = []

    def _release(self, step: int) -> Iterator[Line]:
        held, self._held = self._held, []
        for form, values, time in held:
            yield form, [*values, step, None, time]
