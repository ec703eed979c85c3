"""TRL and the Hugging Face trainer: `trainer_state.json`, a bare log history, rows as JSON lines, and the console."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain, islice
from typing import Any, ClassVar

from rldk.core.catalog import identify, is_measured, locate
from rldk.core.catalog.axes import SUMMARY_KEYS, has_step, strip_eval
from rldk.core.errors import ReadError
from rldk.core.jsonio import to_number
from rldk.ingest.adapter import Adapter
from rldk.ingest.formats import console, json_document, json_lines
from rldk.ingest.formats.python_dicts import has_spread_dicts, joined, parse_dict
from rldk.ingest.formats.trainer_steps import HELD_OUT, SUMMARY, TRAIN, TrainerSteps
from rldk.runs.table import TableBuilder

__all__ = ["HFConsoleAdapter", "TRLAdapter"]

_TRL = ("trl_ppo", "trl_grpo", "trl_dpo", "trl_old")
_HF_KEYS = frozenset({"learning_rate", "epoch", "loss", "grad_norm", "step"})
_STATE_MARKS = (b'"log_history"', b'"is_world_process_zero"', b'"total_flos"')


class TRLAdapter(Adapter):
    """Reads what a TRL trainer, or an rldk callback on one, leaves behind."""

    name: ClassVar[str] = "trl"
    title: ClassVar[str] = "TRL and Hugging Face trainer logs"

    def can_handle(self) -> bool:
        return self._layout is not None

    @cached_property
    def _layout(self) -> str | None:
        """`events`, `document` or `lines`; `None` for any other file."""
        source = self.source
        if not source.is_text:
            self.why = "not a text file"
            return None
        if json_lines.looks_like_events(source):
            self.why = "an rldk event log"
            return "events"
        if json_document.looks_like_document(source):
            if any(mark in source.head for mark in _STATE_MARKS):
                self.why = "a trainer's state with `log_history`"
                return "document"
            rows = json_document.head_rows(source.head)
        else:
            rows = list(source.head_objects) if json_lines.looks_like_json_lines(source) else []
        keys = dict.fromkeys(key for row in rows[:50] for key in row)
        framework = identify(keys)
        if framework in _TRL or (framework is None and any(len(_HF_KEYS.intersection(row)) >= 3 for row in rows[:50])):
            self.why = f"rows with the keys of {framework or 'the Hugging Face trainer'}"
            return "document" if json_document.looks_like_document(source) else "lines"
        self.why = "no keys of a TRL trainer"
        return None

    def fill(self, builder: TableBuilder) -> None:
        if self._layout is None:
            raise ReadError(f"{self.source.path} is not a TRL log: {self.why}.")
        if self._layout == "events":
            json_lines.fill_events(self, builder)
        elif self._layout == "lines":
            json_lines.fill_json_lines(self, builder)
        else:
            builder.add_all(json_document.iter_document(self))


Shapes = dict[tuple[str, ...], int | None]
_START = re.compile(rb"""\{(?:'[^'\\\r{}]{1,200}'|"[^"\\\r{}]{1,200}"): """)
_SAID = re.compile(
    rb"\b(?:step|rollout|perf|eval|train|iteration|iter|update)[ _:=#]{1,2}(\d+)(?:/\d+)?\]?[ :|>=-]*$", re.IGNORECASE
)
"""The step before a dict: `step 3: {…}`, `✨ Global step 3: {…}`, and slime's `rollout 3: {…}` and `perf 3: {…}`."""
_MOST_FAILURES = 64
_LOOKED_AT = 100
_TORN = re.compile(rb"\{'[\w/]+': [^{]*'(?:loss|epoch|reward|learning_rate)'")


class HFConsoleAdapter(Adapter):
    """Reads `{'loss': 0.1, 'grad_norm': nan, 'reward': 0.5, 'epoch': 0.01}` wherever it stands in a line.

    The rows of the Hugging Face trainer have no step. Where the progress bar is in the file too, it tells each row's; so do
    the epochs, where the trainer says how many steps they have; else rows are counted. Other programs put the step before the
    dict (`step 3: {…}`), or print the dict over several lines.
    """

    name: ClassVar[str] = "hf_console"
    title: ClassVar[str] = "TRL and Hugging Face console output"
    max_rows: ClassVar[int] = console.MAX_ROWS

    def can_handle(self) -> bool:
        self.why = "no line holds a Python dict of metrics"
        if not console.is_console(self.source):
            return False
        found = self._first_on_a_line
        if self._is_spread:
            lines = joined(enumerate(self.source.wide_head.splitlines()))
            found = next((row for _, line in lines if b"{" in line for row in _rows(line, {})), None)
        if found is None:
            return False
        self.why = f"Python dicts with the keys of {identify(found) or 'the Hugging Face trainer'}"
        return True

    @cached_property
    def _first_on_a_line(self) -> dict[str, Any] | None:
        return next((row for line in console.iter_head(self.source, _START) for row in _rows(line, {})), None)

    @cached_property
    def _is_spread(self) -> bool:
        """Whether dicts are printed over several lines."""
        return self._first_on_a_line is None and has_spread_dicts(self.source.wide_head)

    def read(self) -> Iterator[dict[str, Any]]:
        self._steps = TrainerSteps()
        see = self._steps.see
        shapes: Shapes = {}
        self.problems.last_row = 0
        lines = self.source.lines(self.problems, self.progress)
        for number, line in joined(lines) if self._is_spread else lines:
            if (row := _whole(line)) is not None:
                if self._takes(number, row, shapes):
                    yield row
                continue
            if b"{" not in line and b"|" not in line and b"\r" not in line:
                if b"/" in line or b" = " in line:
                    see(line)
                continue
            for piece in console.plain_line(line).split(b"\r"):
                at = piece.find(b"{")
                if at < 0:
                    if piece:
                        see(piece)
                    continue
                if at > 0:
                    see(piece[:at])
                elif (row := _whole(piece)) is not None:
                    if self._takes(number, row, shapes):
                        yield row
                    continue
                yield from self._rows_of(number, piece, shapes)

    def _takes(self, number: int, row: dict[str, Any], shapes: Shapes) -> bool:
        """Whether a dict is a row; its place among the steps is noted."""
        kind = _kind_of(row, shapes)
        if kind is None:
            return False
        self.problems.last_row = number
        self._steps.add(kind, to_number(row.get("epoch")))
        return True

    def _rows_of(self, number: int, piece: bytes, shapes: Shapes) -> Iterator[dict[str, Any]]:
        time = None
        if not piece.startswith(b"{"):
            time, _ = console.split_stamp(piece[:64].decode("utf-8", "replace"))
        found = False
        for row in _rows(piece, shapes):
            found = self._takes(number, row, shapes)
            if time is not None:
                row["wall_time"] = time
            yield row
        if not found and _TORN.search(piece):
            self.problems.add(number, "an incomplete Python dict")

    def fill(self, builder: TableBuilder) -> None:
        """Steps are filled in after the last row is read: only then it is sure that the bar's steps are theirs."""
        rows = self.read()
        first = list(islice(rows, _LOOKED_AT))
        if not first or any(map(has_step, first)):
            builder.add_all(chain(first, rows))
            return
        try:
            builder.add_all({**row, "step": 0} for row in chain(first, rows))
        finally:
            steps, how = self._steps.steps()
            self.notes.append(how)
            builder.set_numbers("step", steps[: builder.rows])


def _whole(text: bytes) -> dict[str, Any] | None:
    """The dict that a text is, if it is that and nothing else, as most are."""
    if not text.startswith(b"{'"):
        return None
    parsed = parse_dict(text, 0)
    return parsed[0] if parsed is not None and parsed[1] == len(text) else None


def _rows(line: bytes, shapes: Shapes) -> Iterator[dict[str, Any]]:
    """The dicts in a line that are rows; `shapes` remembers what rows with such keys are."""
    position = failures = 0
    while failures < _MOST_FAILURES and (match := _START.search(line, position)):
        parsed = parse_dict(line, match.start())
        if parsed is None:
            position, failures = match.end(), failures + 1
            continue
        row, position = parsed
        if (said := _SAID.search(line, max(0, match.start() - 64), match.start())) and not has_step(row):
            row = {"step": int(said[1]), **row}
        if _kind_of(row, shapes) is not None:
            yield row


def _kind_of(row: Mapping[str, Any], shapes: Shapes) -> int | None:
    """What a dict is a row of, remembered for those with the same keys."""
    shape = tuple(row)
    if shape not in shapes:
        if len(shapes) > 4096:
            shapes.clear()
        shapes[shape] = _kind(row)
    return shapes[shape]


def _kind(row: Mapping[str, Any]) -> int | None:
    """What a dict is a row of; `None` for one that is not a row: a configuration, a list of tokens.

    The trainer puts the epoch into each row, so a metric beside it is enough; without it there have to be two.
    """
    numbers = [key for key, value in row.items() if value is None or to_number(value) is not None]
    if SUMMARY_KEYS.intersection(numbers):
        return SUMMARY
    held_out = [key for key in numbers if strip_eval(key) is not None and locate(key) is None]
    measured = [key for key in numbers if is_measured(key) and key not in held_out]
    placed = "epoch" in row or has_step(row)
    if len(measured) + (1 if placed else 0) >= 2:
        return TRAIN
    return HELD_OUT if held_out and placed else None
