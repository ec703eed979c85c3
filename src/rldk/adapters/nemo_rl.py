"""NeMo-RL's metrics as JSON lines."""

from __future__ import annotations

from typing import ClassVar

from rldk.adapters.jsonlines import JsonLinesAdapter

__all__ = ["NemoRLAdapter"]


class NemoRLAdapter(JsonLinesAdapter):
    """Reads `train/reward`, `train/kl_penalty`, `train/probs_ratio` and their fellows, with or without the prefix."""

    name: ClassVar[str] = "nemo_rl"
    title: ClassVar[str] = "NeMo-RL (JSON lines)"
    framework: ClassVar[str | None] = "nemo_rl"
