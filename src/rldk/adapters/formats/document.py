"""One JSON document: a list of rows, a trainer's state with its history, parallel lists, or one row of last values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rldk.adapters.formats.flat import flatten
from rldk.adapters.source import Source

__all__ = ["head_rows", "iter_rows", "looks_like_document", "rows_of"]

HISTORY_KEYS = ("log_history", "history", "logs", "metrics", "rows", "steps", "step_logs", "training_history", "data")


def looks_like_document(source: Source) -> bool:
    """Whether the file begins like a JSON list or object that goes on over lines, or is a single one."""
    start = source.head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if start == b"[":
        return True
    return start == b"{" and len(source.head_objects) <= 1 and (not source.head_objects or len(source.head_lines) == 1)


def rows_of(document: Any) -> list[Mapping[str, Any]] | None:
    """The rows that a document holds, or `None` if it holds none."""
    if isinstance(document, list):
        rows = [row for row in document if isinstance(row, dict)]
        return rows or None
    if not isinstance(document, dict):
        return None
    for key in HISTORY_KEYS:
        inner = document.get(key)
        if isinstance(inner, list) and any(isinstance(row, dict) for row in inner):
            return [row for row in inner if isinstance(row, dict)]
        if isinstance(inner, dict) and (rows := _parallel(inner)):
            return rows
    return _parallel(document) or ([document] if document else None)


def _parallel(document: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Lists of one length under names: one row for each position."""
    lists = {key: value for key, value in document.items() if isinstance(value, list) and not any(isinstance(cell, (dict, list)) for cell in value)}
    lengths = [len(value) for value in lists.values() if value]
    if not lengths:
        return None
    rows: list[dict[str, Any]] = [{} for _ in range(max(lengths))]
    for key, cells in lists.items():
        for row, cell in zip(rows, cells, strict=False):
            row[key] = cell
    return list(rows)


def iter_rows(document: Any) -> Iterator[Mapping[str, Any]]:
    """The document's rows, flat."""
    for row in rows_of(document) or ():
        yield flatten(row)


def head_rows(head: bytes, most: int = 20) -> list[Mapping[str, Any]]:
    """The first objects of a JSON list of which only the beginning is at hand, in the document or under `log_history`."""
    text = head.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    rows: list[Mapping[str, Any]] = []
    position = text.find("[")
    while 0 <= position and len(rows) < most:
        position = text.find("{", position)
        if position < 0:
            break
        try:
            row, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            break
        if isinstance(row, dict):
            rows.append(row)
    return rows
