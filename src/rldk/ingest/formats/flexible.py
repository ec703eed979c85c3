"""The adapter of last resort: any rows at all, placed by the catalogue's guesses and by the user's own field map."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

from rldk.core.catalog.axes import is_axis
from rldk.core.jsonio import to_number
from rldk.ingest.adapter import Adapter
from rldk.ingest.formats import json_document, json_lines
from rldk.ingest.formats.delimited import fill_table
from rldk.ingest.formats.text_table import header_of
from rldk.ingest.unmapped_keys import MAX_SUGGESTED, explain, listed, placeable, suggest
from rldk.runs.run import Run
from rldk.runs.table import TableBuilder

__all__ = ["FlexibleAdapter"]


class FlexibleAdapter(Adapter):
    """Reads JSON lines, a JSON document or a delimited table of which no other adapter knows the keys.

    The run's notes say what it guessed, which keys it did not recognise, and the field map that would map them.
    """

    name: ClassVar[str] = "flexible"
    title: ClassVar[str] = "any table of rows, by the names of its keys"

    def can_handle(self) -> bool:
        """Whether it is a table of rows in which at least one key can be placed, by the catalogue or the field map."""
        keys = self._first_keys()
        if keys is None:
            self.why = "no rows of JSON or of delimited text"
            return False
        placed = placeable(keys, self.field_map)
        if placed:
            self.why = f"rows in which {len(placed)} of {len(keys)} numeric keys look like metrics"
        else:
            near = [f"{key}={name}" for key in keys[:MAX_SUGGESTED] if not is_axis(key) and (name := suggest(key))]
            example = near[0] if near else "KEY=METRIC"
            found = listed(keys, 5) or "no numeric keys"
            self.why = f"none of its keys is a known metric ({found}); map them with --field-map {example}"
        return bool(placed)

    def _first_keys(self) -> list[str] | None:
        """The keys of the first rows, where these are numbers; `None` where there are no rows."""
        if self._layout == "lines":
            rows = [json_lines.flatten(row) for row in self.source.head_objects[:50]]
            numeric = (key for row in rows for key, value in row.items() if to_number(value) is not None)
            return list(dict.fromkeys(numeric))
        if self._layout == "document":
            return json_document.head_keys(self.source) or None
        header = header_of(self.source) if self._layout == "table" else None
        return list(header.names) if header else None

    @cached_property
    def _layout(self) -> str:
        """`document`, `lines` or `table`; empty where it is none of these."""
        if not self.source.is_text:
            return ""
        if json_document.looks_like_document(self.source):
            return "document"
        if json_lines.looks_like_json_lines(self.source):
            return "lines"
        return "table" if header_of(self.source) else ""

    def fill(self, builder: TableBuilder) -> None:
        if self._layout == "document":
            builder.add_all(json_document.iter_document(self))
        elif self._layout == "lines":
            json_lines.fill_json_lines(self, builder)
        else:
            fill_table(self, builder)

    def runs(self) -> list[Run]:
        runs = super().runs()
        for run in runs:
            run.notes += explain(run)
        return runs
