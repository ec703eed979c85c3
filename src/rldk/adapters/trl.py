"""TRL and the Hugging Face trainer: `trainer_state.json`, a bare log history, rows as JSON lines, rldk's event log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rldk.adapters.base import Adapter
from rldk.adapters.events import fill_events, is_event, iter_events
from rldk.adapters.formats import document, jsonl
from rldk.adapters.formats.settings import document_settings
from rldk.adapters.jsonlines import fill_json_lines, iter_json_lines
from rldk.core.catalog import identify
from rldk.core.errors import ReadError
from rldk.runs.table import TableBuilder

__all__ = ["TRLAdapter"]

_TRL = ("trl_ppo", "trl_grpo", "trl_dpo", "trl_old")
_HF_KEYS = frozenset({"learning_rate", "epoch", "loss", "grad_norm", "step"})
_STATE_MARKS = (b'"log_history"', b'"is_world_process_zero"', b'"total_flos"')


class TRLAdapter(Adapter):
    """Reads what a TRL trainer, or an rldk callback on one, leaves behind."""

    name: ClassVar[str] = "trl"
    title: ClassVar[str] = "TRL and Hugging Face trainer logs"

    def can_handle(self) -> bool:
        self._layout = self._look()
        return self._layout is not None

    def _look(self) -> str | None:
        source = self.source
        if source.is_folder or source.is_binary:
            self.why = "not a text file"
            return None
        if any(is_event(row) for row in source.head_objects[:20]):
            self.why = "an rldk event log"
            return "events"
        if document.looks_like_document(source):
            if any(mark in source.head for mark in _STATE_MARKS):
                self.why = "a trainer's state with `log_history`"
                return "document"
            rows = document.head_rows(source.head)
        else:
            rows = list(source.head_objects) if jsonl.looks_like_json_lines(source) else []
        keys = dict.fromkeys(key for row in rows[:50] for key in row)
        framework = identify(keys)
        if framework in _TRL or (framework is None and any(len(_HF_KEYS.intersection(row)) >= 3 for row in rows[:50])):
            self.why = f"rows with the keys of {framework or 'the Hugging Face trainer'}"
            return "document" if document.looks_like_document(source) else "lines"
        self.why = "no keys of a TRL trainer"
        return None

    def read(self) -> Iterator[Mapping[str, Any]]:
        layout = getattr(self, "_layout", None) or self._look()
        if layout is None:
            raise ReadError(f"{self.source.path} is not a TRL log: {self.why}.")
        if layout == "events":
            return iter_events(self)
        if layout == "document":
            whole = self.source.document(self.problems)
            self.settings[None] = document_settings(whole)
            return document.iter_rows(whole)
        return iter_json_lines(self)

    def fill(self, builder: TableBuilder) -> None:
        layout = getattr(self, "_layout", None) or self._look()
        if layout == "events":
            fill_events(self, builder)
        elif layout == "lines":
            fill_json_lines(self, builder)
        else:
            builder.add_all(self.read())
