"""The adapter of last resort: any rows at all, placed by the catalogue's guesses and by the user's own field map."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rldk.core.catalog.axes import is_axis
from rldk.core.errors import ReadError
from rldk.core.jsonio import to_number
from rldk.ingest.adapter import Adapter
from rldk.ingest.formats import delimited, json_document, json_lines
from rldk.ingest.formats.json_lines import fill_json_lines, flatten, iter_json_lines
from rldk.ingest.formats.table_header import header_of
from rldk.ingest.source import DocumentTooLarge
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
        layout = self._layout()
        if layout == "lines":
            rows = [flatten(row) for row in self.source.head_objects[:50]]
            numeric = (key for row in rows for key, value in row.items() if to_number(value) is not None)
            return list(dict.fromkeys(numeric))
        if layout == "document":
            return json_document.head_keys(self.source) or None
        header = header_of(self.source) if layout == "table" else None
        return list(header.names) if header else None

    def _layout(self) -> str:
        if not self.source.is_text:
            return ""
        if json_document.looks_like_document(self.source):
            return "document"
        if json_lines.looks_like_json_lines(self.source):
            return "lines"
        return "table" if header_of(self.source) else ""

    def read(self) -> Iterator[Mapping[str, Any]]:
        layout = self._layout()
        if layout == "document":
            try:
                return json_document.iter_rows(self.source.document(self.problems), self.notes)
            except DocumentTooLarge as error:
                return json_document.rows_of_beginning(self.source, self.notes, error)
        if layout == "lines":
            return iter_json_lines(self)
        header = header_of(self.source) if layout == "table" else None
        if header is None:
            raise ReadError(f"{self.source.path} is neither JSON lines nor a JSON document nor a table with a header.")
        self.notes += header.notes
        return delimited.iter_rows(self.source, header, self.problems, self.notes, self.progress)

    def fill(self, builder: TableBuilder) -> None:
        if self._layout() == "lines":
            fill_json_lines(self, builder)
        else:
            super().fill(builder)

    def runs(self) -> list[Run]:
        runs = super().runs()
        for run in runs:
            run.notes += explain(run)
        return runs
