"""JSON lines: one object per line, nested or not; rows of held-out data, and lines that are not steps."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from rldk.core.catalog import FRAMEWORKS, identify, is_measured
from rldk.core.catalog.axes import HELD_OUT, PHASE_KEYS, has_step
from rldk.core.jsonio import loads
from rldk.ingest.adapter import Adapter
from rldk.ingest.formats.event_log import is_event
from rldk.ingest.formats.json_blocks import FastRows
from rldk.ingest.source import Source
from rldk.log.blocks import Progress
from rldk.log.problems import LineProblems
from rldk.runs.list_statistics import mean_of
from rldk.runs.table import TableBuilder

__all__ = [
    "JSON_LINES_ADAPTERS",
    "JsonLinesAdapter",
    "fill_json_lines",
    "fill_plain_rows",
    "flatten",
    "iter_json_lines",
    "iter_json_rows",
    "looks_like_json_lines",
]

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


def iter_json_rows(source: Source, problems: LineProblems, progress: Progress | None = None) -> Iterator[Mapping[str, Any]]:
    """Rows as they are, nested or not; a line that is not a JSON object is counted and located."""
    for number, line in source.lines(problems, progress):
        if (row := _parse(number, line, problems)) is not None:
            yield row


def fill_plain_rows(source: Source, builder: TableBuilder, problems: LineProblems, progress: Progress | None = None) -> None:
    """Put all rows into a table; those that look alike by the fast way."""
    FastRows(builder).fill(source, lambda number, line: _parse(number, line, problems), problems, progress)


def _parse(number: int, line: bytes, problems: LineProblems) -> Mapping[str, Any] | None:
    try:
        row = loads(line)
    except ValueError as error:
        problems.add(number, f"not JSON: {error}")
        return None
    if type(row) is dict:
        return row
    problems.add(number, f"a JSON {type(row).__name__} and not an object")
    return None


LINE_TYPE_KEYS = ("type", "event", "kind", *PHASE_KEYS[1:])
"""Keys that say what a line is: a row of training, one of evaluation, or not a step at all."""


def line_type_key(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """The key that says what a line is, if the rows have one: it names held-out data, or else says different things."""
    said = {key: {row[key].lower() for row in rows if type(row.get(key)) is str} for key in LINE_TYPE_KEYS}
    held_out = next((key for key in LINE_TYPE_KEYS if said[key] & HELD_OUT), None)
    return held_out or next((key for key in LINE_TYPE_KEYS if len(said[key]) > 1), None)


def types_without_metrics(rows: Sequence[Mapping[str, Any]], key: str, mapped: Collection[str] = ()) -> frozenset[str]:
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


def keep_steps(
    rows: Iterable[Mapping[str, Any]], key: str, notes: list[str], *, stepped: bool = True, bare: Collection[str] = ()
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
        if any(map(is_event, self.source.head_objects[:20])):
            self.why = "an rldk event log"
            return False
        found = framework_of(self.source)
        self.why = f"keys of {FRAMEWORKS[found].title}" if found else "keys of no known framework"
        return found == self.framework

    def read(self) -> Iterator[Mapping[str, Any]]:
        return iter_json_lines(self)

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


def iter_json_lines(adapter: Adapter) -> Iterator[Mapping[str, Any]]:
    """The rows; where the lines say what they are, those that are not steps are left out."""
    rows = iter_json_rows(adapter.source, adapter.problems, adapter.progress)
    first = adapter.source.head_objects
    key = line_type_key(first)
    if key is None:
        return rows
    bare = types_without_metrics(first, key, adapter.field_map)
    return keep_steps(rows, key, adapter.notes, stepped=any(map(has_step, first)), bare=bare)


def fill_json_lines(adapter: Adapter, builder: TableBuilder) -> None:
    """Put the rows into a table, by the block where there is only one type of them."""
    if line_type_key(adapter.source.head_objects) is None:
        fill_plain_rows(adapter.source, builder, adapter.problems, adapter.progress)
    else:
        builder.add_all(iter_json_lines(adapter))
