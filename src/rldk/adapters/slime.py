"""slime's metrics as JSON lines."""

from __future__ import annotations

from typing import ClassVar

from rldk.adapters.jsonlines import JsonLinesAdapter

__all__ = ["SlimeAdapter"]


class SlimeAdapter(JsonLinesAdapter):
    """Reads `train/pg_loss`, `train/ppo_kl`, `rollout/raw_reward`: train and rollout rows of one step are merged."""

    name: ClassVar[str] = "slime"
    title: ClassVar[str] = "slime (JSON lines)"
    framework: ClassVar[str | None] = "slime"
