"""One JSON document: a list of rows, a trainer's state with its history, parallel lists, or one row of last values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any, ClassVar

from rldk.core.catalog import is_measured
from rldk.core.catalog.axes import STEP_KEYS
from rldk.core.errors import ReadError
from rldk.ingest.adapter import Adapter
from rldk.ingest.formats.json_lines import flatten
from rldk.ingest.formats.json_rows import rows_anywhere
from rldk.ingest.run_settings import document_settings
from rldk.ingest.source import HEAD_BYTES, DocumentTooLarge, Source
from rldk.ingest.unmapped_keys import placeable
from rldk.log.problems import LineProblems

__all__ = ["JsonDocumentAdapter", "head_keys", "head_rows", "iter_document", "looks_like_document"]

_HISTORIES = ("log_history", "history", "logs", "metrics", "rows", "steps", "step_logs", "training_history", "episodes", "data")
_STEPS = frozenset({*STEP_KEYS, "steps", "iterations", "iters", "global_steps"})
_NAME = re.compile(r'"((?:[^"\\]|\\.){0,256})"\s*:')  # bounded: without an end it would hold each letter of a long text
_FIRST_ROW = re.compile(r"\[\s*\{")
_NEXT_ROW = re.compile(r"\s*,\s*\{")
_LOOKED_AT = 20  # rows
_MAX_DEPTH = 6
_FEWEST = 3  # values of a shorter list from which equal distances are no chance
_BEGINNING, _MOST_ROWS = 64 << 20, 200_000
Lists = dict[str, list[Any]]


def looks_like_document(source: Source) -> bool:
    """Whether the file begins like a JSON list or object that goes on over lines, or is a single one."""
    start = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if start == b"[":
        return True
    if start != b"{":
        return False
    opens = source.head_lines[0].strip() == b"{"  # a brace on a line of its own: rows with one line each may be inside
    return opens or not source.head_objects or len(source.head_lines) == len(source.head_objects) == 1


def _rows_of(document: Any) -> list[Mapping[str, Any]] | None:
    """The rows that a document holds as objects, or `None` if it holds none."""
    if isinstance(document, list):
        rows: list[Mapping[str, Any]] = [row for row in document if isinstance(row, dict)]
        return (rows if not rows or _measure(rows[:_LOOKED_AT]) else rows_anywhere(document) or rows) or None
    if not isinstance(document, dict):
        return None
    for key in _HISTORIES:
        inner = document.get(key)
        if isinstance(inner, list) and any(isinstance(row, dict) for row in inner):
            return [row for row in inner if isinstance(row, dict)]
    if any(isinstance(value, list) and not any(isinstance(cell, (dict, list)) for cell in value) for value in document.values()):
        return None  # parallel lists
    return rows_anywhere(document)


def _measure(rows: list[Any]) -> bool:
    """Whether rows have a key, nested or not, that the catalogue knows."""
    return any(is_measured(key.removeprefix("metrics/")) for row in rows for key in flatten(row))


def _lists_of(document: Any, notes: list[str]) -> list[Lists]:
    """Parallel lists, by what they are parallel to: those of one length, or those that stand beside a list of steps.

    A shorter list without steps of its own, whose values can stand at equal distances among the rows, holds evaluations: one
    at the end of each interval. Others cannot be placed and are left out.
    """
    groups: dict[str, Lists] = {}
    _collect(document, "", groups, 0)
    tables: list[Lists] = []
    for lists in groups.values():
        steps = lists.get("step")
        if steps is not None:
            tables.append({name: cells for name, cells in lists.items() if len(cells) == len(steps)})
            lists = {name: cells for name, cells in lists.items() if len(cells) != len(steps)}
        for name, cells in lists.items():
            home = next((table for table in tables if _length(table) == len(cells) and name not in table), None)
            if home is None:
                tables.append(home := {})
            home[name] = cells
    if not any("step" in table for table in tables):
        return [{"step": list(range(1, _length(table) + 1)), **table} for table in tables]
    lost = []
    (main, *others) = sorted((table for table in tables if "step" in table), key=_length, reverse=True)
    for table in tables:
        if "step" in table:
            continue
        apart, rest = divmod(_length(main), _length(table))
        if rest or _length(table) < _FEWEST or apart < 2:
            lost += list(table)
            continue
        others.append({"step": main["step"][apart - 1 :: apart], **table})
        notes.append(f"lists without steps are taken as one value every {apart} rows: {', '.join(list(table)[:5])}")
    if lost:
        notes.append(f"lists without steps that are not as long as the list of steps are left out: {', '.join(lost[:5])}")
    return [main, *others]


def _length(table: Lists) -> int:
    return len(next(iter(table.values())))


def _collect(document: Any, path: str, groups: dict[str, Lists], depth: int) -> None:
    if not isinstance(document, dict) or depth > _MAX_DEPTH:
        return
    for key, value in document.items():
        if isinstance(value, dict):
            _collect(value, f"{path}{key}/", groups, depth + 1)
        elif isinstance(value, list) and value and not any(isinstance(cell, (dict, list)) for cell in value):
            name = "step" if key in _STEPS else path + key
            groups.setdefault(path, {})[name] = value


def _inside(document: Any) -> Any:
    """The part that holds the lists, where the document names it: `{"config": …, "history": {"loss": […]}}`."""
    if isinstance(document, dict):
        for key in _HISTORIES:
            inner = document.get(key)
            if isinstance(inner, dict) and any(isinstance(value, (list, dict)) for value in inner.values()):
                return inner
    return document


def iter_document(adapter: Adapter) -> Iterator[Mapping[str, Any]]:
    """The rows of the document that an adapter reads; of one that is too large to be read as a whole, those at its beginning."""
    try:
        document = adapter.source.document(adapter.problems)
    except DocumentTooLarge as error:
        return _rows_of_beginning(adapter, error)
    adapter.settings[None] = document_settings(document)
    return _iter_rows(document, adapter.notes)


def _iter_rows(document: Any, notes: list[str]) -> Iterator[Mapping[str, Any]]:
    rows = _rows_of(document)
    if rows is not None:
        yield from rows
        return
    tables = _lists_of(_inside(document), notes)
    for table in tables:
        for cells in zip(*table.values(), strict=True):
            yield dict(zip(table, cells, strict=True))
    if not tables and isinstance(document, dict) and document:
        yield document


def head_rows(head: bytes) -> list[Mapping[str, Any]]:
    """The first objects of a JSON list of which only the beginning is at hand, by itself or under `log_history`."""
    return list(islice(_objects_in(head.decode("utf-8", "replace")), _LOOKED_AT))


def _objects_in(text: str) -> Iterator[Mapping[str, Any]]:
    decoder = json.JSONDecoder()
    begin = _FIRST_ROW.search(text)
    while begin is not None:
        try:
            row, position = decoder.raw_decode(text, begin.end() - 1)
        except (ValueError, RecursionError):
            return
        yield row
        begin = _NEXT_ROW.match(text, position)


def _rows_of_beginning(adapter: Adapter, error: DocumentTooLarge) -> Iterator[Mapping[str, Any]]:
    """The rows at the beginning of a document; where it has none, that is an error."""
    rows = _objects_in(adapter.source.first(_BEGINNING).decode("utf-8", "replace"))
    first = next(rows, None)
    if first is None:
        raise error
    where = f"at most {_MOST_ROWS:,} rows of its first {_BEGINNING >> 20} MiB are judged"
    adapter.notes.append(f"the document is too large to be read as a whole: {where}")
    return islice(chain((first,), rows), _MOST_ROWS)


def head_keys(source: Source) -> list[str]:
    """The keys of the first rows; where there are none in the head of a large document, all names in it."""
    rows = head_rows(source.head)
    if not _measure(list(rows)) and len(source.head) < HEAD_BYTES:
        try:
            whole = source.document(LineProblems())
        except ReadError:
            return list(dict.fromkeys(key for row in rows for key in flatten(row)))
        rows = list(islice(_iter_rows(whole, []), _LOOKED_AT))
        if rows == [whole] and sum(map(is_measured, flatten(whole))) < 2:
            return []  # a configuration has no rows
    if rows:
        return list(dict.fromkeys(key for row in rows for key in flatten(row)))
    return list(dict.fromkeys(_NAME.findall(source.wide_head.decode("utf-8", "replace"))))


class JsonDocumentAdapter(Adapter):
    """Reads `[{"step": 1, "loss": 0.1}, …]`, `{"step": [1, …], "loss": [0.1, …]}` and `{"train": {"loss": […]}}`."""

    name: ClassVar[str] = "json"
    title: ClassVar[str] = "one JSON document with rows or parallel lists"

    def can_handle(self) -> bool:
        self.why = "not one JSON document"
        if not self.source.is_text or not looks_like_document(self.source):
            return False
        keys = head_keys(self.source)
        known = placeable(keys, self.field_map)
        self.why = f"a JSON document in which {len(known)} of {len(keys)} keys are known metrics"
        return bool(known)

    def read(self) -> Iterator[Mapping[str, Any]]:
        return iter_document(self)
