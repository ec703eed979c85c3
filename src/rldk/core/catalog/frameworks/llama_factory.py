"""LLaMA-Factory, as JSON lines: `current_steps`, `total_steps`, `loss`, `reward`, `lr`, `elapsed_time`."""

from __future__ import annotations

from rldk.core.catalog.metric import framework

__all__ = ["LLAMA_FACTORY"]

LLAMA_FACTORY = framework(
    "llama_factory", "LLaMA-Factory",
    signature=("current_steps", "total_steps", "percentage"),
    json_lines=True,
    known="predict_loss throughput total_tokens",
    keys={
        "loss": "loss",
        "grad_norm": "grad_norm",
        "lr": ("learning_rate", "lr"),
        "reward_mean": "reward",
        "preference_accuracy": "accuracy",
        "gpu_memory_gb": "vram_allocated",
        "gpu_memory_reserved_gb": "vram_reserved",
    },
)
