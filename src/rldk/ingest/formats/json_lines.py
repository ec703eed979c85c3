"""JSON lines, one object per line: rldk's own events, rows of any framework, rows of held-out data, lines that are not steps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from rldk.core.catalog import FRAMEWORKS, identify, is_measured
from rldk.core.catalog.axes import HELD_OUT, PHASE_KEYS, has_step
from rldk.core.jsonio import loads, to_step
from rldk.ingest.adapter import Adapter
from rldk.ingest.formats.json_blocks import FastRows
from rldk.ingest.source import Source
from rldk.log.problems import LineProblems
from rldk.runs.list_statistics import mean_of
from rldk.runs.table import TableBuilder

__all__ = [
    "JSON_LINES_ADAPTERS", "EventLogAdapter", "event_in_line", "fill_events", "fill_json_lines", "flatten", "iter_json_rows",
    "looks_like_events", "looks_like_json_lines", "row_in_line",
]  # fmt: skip

_MAX_DEPTH = 8


def flatten(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row with nested objects unfolded; a list is left out, or the mean of what it measures: a row holds one value a key."""
    for value in row.values():
        if type(value) is dict or type(value) is list:
            flat: dict[str, Any] = {}
            _unfold(row, "", flat, 0)
            return flat
    return row


def _unfold(row: Mapping[str, Any], prefix: str, into: dict[str, Any], depth: int) -> None:
    for key, value in row.items():
        if type(value) is dict:
            if depth < _MAX_DEPTH:
                _unfold(value, f"{prefix}{key}/", into, depth + 1)
        elif type(value) is not list:
            into[prefix + key] = value
        elif (mean := mean_of(prefix + key, value)) is not None:
            into[prefix + key] = mean


def looks_like_json_lines(source: Source) -> bool:
    """Whether at least half of the first lines are JSON objects (the head of a document of one line is not)."""
    lines = [line for line in source.head_lines[:200] if line.strip()]
    return bool(source.head_objects) and 2 * len(source.head_objects) >= len(lines)


def iter_json_rows(adapter: Adapter) -> Iterator[Mapping[str, Any]]:
    """Rows as they are, nested or not."""
    for number, line in adapter.source.lines(adapter.problems, adapter.progress):
        if (row := row_in_line(number, line, adapter.problems)) is not None:
            yield row


def row_in_line(number: int, line: bytes, problems: LineProblems) -> Mapping[str, Any] | None:
    """The object in a line; a line that is something else is counted and located."""
    try:
        row = loads(line)
    except ValueError as error:
        problems.add(number, f"not JSON: {error}")
        return None
    if type(row) is dict:
        return row
    problems.add(number, f"a JSON {type(row).__name__} and not an object")
    return None


class EventLogAdapter(Adapter):
    """Reads `R_events.jsonl` as rldk's callbacks and trainer write it."""

    name: ClassVar[str] = "rldk"
    title: ClassVar[str] = "rldk event log (JSON lines)"
    framework: str | None = "rldk"

    def can_handle(self) -> bool:
        found = looks_like_events(self.source)
        self.why = "lines with `step` and `metrics`" if found else "no line with `step` and an object `metrics`"
        return found

    def fill(self, builder: TableBuilder) -> None:
        fill_events(self, builder)


def looks_like_events(source: Source) -> bool:
    """Whether one of the first lines has the shape of an event."""
    return any("step" in row and type(row.get("metrics")) is dict for row in source.head_objects[:20])


def fill_events(adapter: Adapter, builder: TableBuilder) -> None:
    """Put the events of a file into a table, those that look alike by the fast way."""
    FastRows(builder, adapter.problems, event_in_line, accepts=_whole_steps).fill(adapter.source, adapter.progress)


def _whole_steps(columns: Mapping[str, Any]) -> bool:
    """Whether a block of events may be taken as a whole; a step that is not a whole number is refused by `event_in_line`."""
    steps = columns.get("step")
    return isinstance(steps, np.ndarray) and bool((steps == np.floor(steps)).all())


def event_in_line(number: int, line: bytes, problems: LineProblems) -> Mapping[str, Any] | None:
    """The event in a line as it is; an event that lacks a step or metrics is counted and located."""
    try:
        raw = loads(line)
    except ValueError as error:
        problems.add(number, f"not JSON: {error}")
        return None
    if type(raw) is not dict or type(raw.get("metrics")) is not dict:
        problems.add(number, "no object `metrics`")
        return None
    if to_step(raw.get("step")) is None:
        problems.add(number, f"Expected `step` to be a whole number, got {raw.get('step')!r:.80}.")
        return None
    return raw


_LINE_TYPE_KEYS = ("type", "event", "kind", *PHASE_KEYS[1:])
"""Keys that say what a line is: a row of training, one of evaluation, or not a step at all."""


def _line_type_key(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """The key that says what a line is, if the rows have one: it names held-out data, or else says different things."""
    said = {key: {row[key].lower() for row in rows if type(row.get(key)) is str} for key in _LINE_TYPE_KEYS}
    held_out = next((key for key in _LINE_TYPE_KEYS if said[key] & HELD_OUT), None)
    return held_out or next((key for key in _LINE_TYPE_KEYS if len(said[key]) > 1), None)


def _types_without_metrics(rows: Sequence[Mapping[str, Any]], key: str, mapped: Collection[str]) -> frozenset[str]:
    """The types that come once and measure nothing that is known, such as a first line with the run's settings.

    Where no type measures anything known, nothing is left out.
    """
    counts: dict[str, int] = {}
    measuring: set[str] = set()
    for row in rows:
        if type(kind := row.get(key)) is str:
            counts[kind] = counts.get(kind, 0) + 1
            if any(name in mapped or is_measured(name) for name in flatten(row)):
                measuring.add(kind)
    return frozenset(kind for kind, count in counts.items() if measuring and kind not in measuring and count == 1)


def _keep_steps(
    rows: Iterable[Mapping[str, Any]], key: str, notes: list[str], stepped: bool, bare: Collection[str]
) -> Iterator[Mapping[str, Any]]:
    """The rows that are steps, with the phase they are of.

    Where rows have steps (`stepped`), lines of a type that never has one are left out, and a note says so. So is the first
    line of each type in `bare`. The phase keeps an evaluation from overwriting the metrics of the training step it was made at.
    """
    counts: dict[str, int] = {}
    counted: set[str] = set()
    left_out: set[str] = set()
    for row in rows:
        kind = row.get(key)
        if type(kind) is not str:
            yield row
            continue
        if kind in bare and kind not in left_out:
            left_out.add(kind)
            notes.append(f"a line with {key}={kind!r} has no known metric and was left out")
            continue
        if has_step(row):
            counted.add(kind)
        elif stepped and kind not in counted:
            counts[kind] = counts.get(kind, 0) + 1
            continue
        yield {**row, "phase": "eval" if kind.lower() in HELD_OUT else "train"} if key not in PHASE_KEYS else row
    for kind, count in counts.items():
        notes.append(f"{count} line(s) with {key}={kind!r} have no step and were left out")


class JsonLinesAdapter(Adapter):
    """Reads JSON lines whose keys are those of the subclass's framework."""

    def can_handle(self) -> bool:
        self.why = "no lines of JSON objects"
        if not self.source.is_text or not looks_like_json_lines(self.source):
            return False
        if looks_like_events(self.source):
            self.why = "an rldk event log"
            return False
        found = framework_of(self.source)
        self.why = f"keys of {FRAMEWORKS[found].title}" if found else "keys of no known framework"
        return found == self.framework

    def fill(self, builder: TableBuilder) -> None:
        fill_json_lines(self, builder)


JSON_LINES_ADAPTERS: list[type[JsonLinesAdapter]] = [
    type(
        f"{framework.name.title().replace('_', '')}Adapter", (JsonLinesAdapter,),
        {
            "__doc__": f"Reads the JSON lines of {framework.title}, recognised by their keys.",
            "name": framework.name, "title": f"{framework.title} (JSON lines)", "framework": framework.name,
        },
    )
    for framework in FRAMEWORKS.values()
    if framework.json_lines
]  # fmt: skip
"""One adapter for each framework that writes JSON lines."""


def framework_of(source: Source) -> str | None:
    """The framework whose keys the first lines have."""
    return _identify(tuple(dict.fromkeys(key for row in source.head_objects[:50] for key in flatten(row))))


@lru_cache(maxsize=16)
def _identify(keys: tuple[str, ...]) -> str | None:
    return identify(keys)


def fill_json_lines(adapter: Adapter, builder: TableBuilder) -> None:
    """Put the rows into a table: by the block, or, where the lines say what they are, without those that are not steps."""
    first = adapter.source.head_objects
    key = _line_type_key(first)
    if key is None:
        FastRows(builder, adapter.problems, row_in_line).fill(adapter.source, adapter.progress)
        return
    bare = _types_without_metrics(first, key, adapter.field_map)
    stepped = any(map(has_step, first))
    builder.add_all(_keep_steps(iter_json_rows(adapter), key, adapter.notes, stepped, bare))
