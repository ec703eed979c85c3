"""The Tinker cookbook's `metrics.jsonl`."""

from __future__ import annotations

from typing import ClassVar

from rldk.adapters.jsonlines import JsonLinesAdapter

__all__ = ["TinkerAdapter"]


class TinkerAdapter(JsonLinesAdapter):
    """Reads `env/all/…`, `optim/…` and `progress/batch`; `test/env/all/…` is held-out data."""

    name: ClassVar[str] = "tinker"
    title: ClassVar[str] = "Tinker cookbook (JSON lines)"
    framework: ClassVar[str | None] = "tinker"
