"""The adapter of last resort: any rows at all, placed by the catalogue's guesses and by the user's own field map."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from rldk.adapters.base import Adapter
from rldk.adapters.formats import delimited, document, jsonl
from rldk.adapters.formats.flat import flatten
from rldk.core.catalog import locate
from rldk.core.catalog.axes import is_axis, strip_eval
from rldk.core.errors import ReadError
from rldk.core.jsonio import to_number

__all__ = ["FlexibleAdapter"]


class FlexibleAdapter(Adapter):
    """Reads JSON lines, a JSON document or a delimited table of which no other adapter knows the keys."""

    name: ClassVar[str] = "flexible"
    title: ClassVar[str] = "any table of rows, by the names of its keys"

    def can_handle(self) -> bool:
        """Whether it is a table of rows in which at least one key can be placed, by the catalogue or the field map."""
        rows = self._first_rows()
        keys = dict.fromkeys(key for row in rows for key, value in row.items() if to_number(value) is not None)
        placed = [key for key in keys if key in self.field_map or (not is_axis(key) and _is_known(key))]
        if not rows:
            self.why = "no rows of JSON or of delimited text"
        elif placed:
            self.why = f"rows in which {len(placed)} of {len(keys)} numeric keys look like metrics"
        else:
            self.why = f"rows of keys that no metric is known by ({_list(keys)})"
        return bool(placed)

    def _first_rows(self) -> list[Mapping[str, Any]]:
        source = self.source
        if source.is_folder or source.is_binary:
            return []
        if jsonl.looks_like_json_lines(source) and not self._is_document():
            return [flatten(row) for row in source.head_objects[:50]]
        if self._is_document():
            rows = document.head_rows(source.head)
            if not rows and len(source.head) < 256 << 10:
                try:
                    rows = list(document.iter_rows(source.document(self.problems)))[:50]
                except ReadError:
                    rows = []
            return [flatten(row) for row in rows]
        if table := delimited.header_of(source):
            names, delimiter = table
            lines = source.head_lines[1:20]
            cells = ([cell.strip() for cell in line.decode("utf-8", "replace").split(delimiter)] for line in lines)
            return [dict(zip(names, row, strict=False)) for row in cells] or [dict.fromkeys(names)]
        return []

    def _is_document(self) -> bool:
        return document.looks_like_document(self.source)

    def read(self) -> Iterator[Mapping[str, Any]]:
        source = self.source
        if source.is_folder or source.is_binary:
            raise ReadError(f"{source.path} is not a text file: name its kind with an adapter.")
        if self._is_document():
            return document.iter_rows(source.document(self.problems))
        if jsonl.looks_like_json_lines(source):
            return jsonl.iter_rows(source, self.problems, self.progress)
        if table := delimited.header_of(source):
            return delimited.iter_rows(source, *table, self.problems, self.progress)
        raise ReadError(f"{source.path} is neither JSON lines, nor a JSON document, nor a table with a header.")


def _is_known(key: str) -> bool:
    bare = strip_eval(key)
    return locate(key) is not None or (bare is not None and locate(bare) is not None)


def _list(keys: Iterable[str], most: int = 5) -> str:
    names = list(keys)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "") if names else "none of them numeric"
