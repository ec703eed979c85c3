"""LLaMA-Factory's `trainer_log.jsonl`."""

from __future__ import annotations

from typing import ClassVar

from rldk.adapters.jsonlines import JsonLinesAdapter

__all__ = ["LlamaFactoryAdapter"]


class LlamaFactoryAdapter(JsonLinesAdapter):
    """Reads `current_steps`, `total_steps`, `loss`, `reward`, `lr` and `elapsed_time`; of PPO it logs little more."""

    name: ClassVar[str] = "llama_factory"
    title: ClassVar[str] = "LLaMA-Factory (JSON lines)"
    framework: ClassVar[str | None] = "llama_factory"
