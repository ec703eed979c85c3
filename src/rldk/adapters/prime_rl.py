"""prime-rl's metrics as JSON lines."""

from __future__ import annotations

from typing import ClassVar

from rldk.adapters.jsonlines import JsonLinesAdapter

__all__ = ["PrimeRLAdapter"]


class PrimeRLAdapter(JsonLinesAdapter):
    """Reads the trainer's `loss/mean`, `mismatch_kl/…`, `optim/…` and the orchestrator's `reward/mean`, `batch/…`."""

    name: ClassVar[str] = "prime_rl"
    title: ClassVar[str] = "prime-rl (JSON lines)"
    framework: ClassVar[str | None] = "prime_rl"
