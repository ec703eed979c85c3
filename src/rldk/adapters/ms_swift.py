"""ms-swift's `logging.jsonl`."""

from __future__ import annotations

from typing import ClassVar

from rldk.adapters.jsonlines import JsonLinesAdapter

__all__ = ["MsSwiftAdapter"]


class MsSwiftAdapter(JsonLinesAdapter):
    """Reads TRL's names, and `"1/547"` as a step, `"5m 18s"` as a time."""

    name: ClassVar[str] = "ms_swift"
    title: ClassVar[str] = "ms-swift (JSON lines)"
    framework: ClassVar[str | None] = "ms_swift"
