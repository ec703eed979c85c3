"""One JSON document: a list of rows, `step_logs.json`, lists side by side, or lists nested by phase."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rldk.adapters.base import Adapter
from rldk.adapters.formats import console, document
from rldk.adapters.formats.settings import document_settings
from rldk.adapters.guesses import placeable
from rldk.runs.table import TableBuilder

__all__ = ["JsonDocumentAdapter"]


class JsonDocumentAdapter(Adapter):
    """Reads `[{"step": 1, "loss": 0.1}, …]`, `{"step": [1, …], "loss": [0.1, …]}` and `{"train": {"loss": […]}}`."""

    name: ClassVar[str] = "json"
    title: ClassVar[str] = "one JSON document with rows or parallel lists"

    def can_handle(self) -> bool:
        self.why = "not one JSON document"
        if not console.is_text(self.source) or not document.looks_like_document(self.source):
            return False
        keys = document.head_keys(self.source)
        known = placeable(keys, self.field_map)
        self.why = f"a JSON document in which {len(known)} of {len(keys)} keys are known metrics"
        return bool(known)

    def read(self) -> Iterator[Mapping[str, Any]]:
        return document.iter_rows(self._document(), self.notes)

    def fill(self, builder: TableBuilder) -> None:
        document.fill_rows(self._document(), builder, self.notes)

    def _document(self) -> Any:
        whole = self.source.document(self.problems)
        self.settings[None] = document_settings(whole)
        return whole
