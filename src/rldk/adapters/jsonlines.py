"""Frameworks that write JSON lines, one object a step: what they share. A file for each says whose keys it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from rldk.adapters.base import Adapter
from rldk.adapters.events import is_event
from rldk.adapters.formats import jsonl
from rldk.adapters.formats.flat import flatten
from rldk.adapters.formats.kinds import bare_kinds, has_step, kind_key, place_kinds
from rldk.adapters.source import Source
from rldk.core.catalog import FRAMEWORKS, identify
from rldk.runs.table import TableBuilder

__all__ = ["JsonLinesAdapter", "fill_json_lines", "iter_json_lines"]


class JsonLinesAdapter(Adapter):
    """Reads JSON lines whose keys are those of the subclass's framework."""

    def can_handle(self) -> bool:
        self.why = "no lines of JSON objects"
        if self.source.is_folder or self.source.is_binary or not jsonl.looks_like_json_lines(self.source):
            return False
        if any(map(is_event, self.source.head_objects[:20])):
            self.why = "an rldk event log"
            return False
        found = framework_of(self.source)
        self.why = f"keys of {FRAMEWORKS[found].title}" if found else "keys of no framework that is known"
        return found == self.framework

    def read(self) -> Iterator[Mapping[str, Any]]:
        return iter_json_lines(self)

    def fill(self, builder: TableBuilder) -> None:
        fill_json_lines(self, builder)


def framework_of(source: Source) -> str | None:
    """The framework whose keys the first lines have."""
    return _identify(tuple(dict.fromkeys(key for row in source.head_objects[:50] for key in flatten(row))))


@lru_cache(maxsize=16)
def _identify(keys: tuple[str, ...]) -> str | None:
    return identify(keys)


def iter_json_lines(adapter: Adapter) -> Iterator[Mapping[str, Any]]:
    """The rows, with those of held-out data told apart where the lines say which they are."""
    rows = jsonl.iter_rows(adapter.source, adapter.problems, adapter.progress)
    first = adapter.source.head_objects
    key = kind_key(first)
    if key is None:
        return rows
    bare = bare_kinds(first, key, adapter.field_map)
    return place_kinds(rows, key, adapter.notes, stepped=any(map(has_step, first)), bare=bare)


def fill_json_lines(adapter: Adapter, builder: TableBuilder) -> None:
    """Put the rows into a table, by the fast way where there is but one kind of them."""
    if kind_key(adapter.source.head_objects) is None:
        jsonl.fill_rows(adapter.source, builder, adapter.problems, adapter.progress)
    else:
        builder.add_all(iter_json_lines(adapter))
