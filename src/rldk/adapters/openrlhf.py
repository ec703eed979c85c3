"""OpenRLHF's metrics as JSON lines."""

from __future__ import annotations

from typing import ClassVar

from rldk.adapters.jsonlines import JsonLinesAdapter

__all__ = ["OpenRLHFAdapter"]


class OpenRLHFAdapter(JsonLinesAdapter):
    """Reads `policy_loss`, `reward`, `return`, `kl`, `rollout/…` and `timing/…` as OpenRLHF names them."""

    name: ClassVar[str] = "openrlhf"
    title: ClassVar[str] = "OpenRLHF (JSON lines)"
    framework: ClassVar[str | None] = "openrlhf"
