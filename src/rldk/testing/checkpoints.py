"""Checkpoints of a small model that moves evenly, for tests of code that reads checkpoints; written with numpy only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from rldk.checkpoints.dtypes import Array
from rldk.checkpoints.safetensors_file import Weights, write_safetensors

__all__ = ["Weights", "moved", "small_model", "write_course", "write_safetensors"]


def small_model(seed: int = 0, layers: int = 3, width: int = 40) -> dict[str, Array]:
    """Weights of a decoder by the names that transformers gives them, as float32."""
    draw = np.random.default_rng(seed)
    weights = {"model.embed_tokens.weight": draw.normal(0, 0.02, (100, width))}
    for n in range(layers):
        weights[f"model.layers.{n}.self_attn.q_proj.weight"] = draw.normal(0, 0.02, (width, width))
        weights[f"model.layers.{n}.mlp.up_proj.weight"] = draw.normal(0, 0.02, (2 * width, width))
        weights[f"model.layers.{n}.input_layernorm.weight"] = np.ones(width)
    return {name: values.astype(np.float32) for name, values in weights.items()}


def moved(weights: Weights, by: float, seed: int) -> dict[str, Array]:
    """The weights after a random change, relative to their size."""
    draw = np.random.default_rng(seed)
    return {
        name: (values + by * np.abs(values).mean() * draw.standard_normal(values.shape)).astype(values.dtype)
        for name, values in weights.items()
    }


def write_course(
    folder: str | Path, count: int = 6, damage: Callable[[int, dict[str, Array]], object] = lambda number, weights: None
) -> list[Path]:
    """Write `checkpoint-10`, `checkpoint-20` …, each changed from the last; what `damage` changes stays changed."""
    weights, folders = small_model(), []
    for number in range(1, count + 1):
        weights = moved(weights, 0.001, number)
        damage(number, weights)
        folders.append(write_safetensors(Path(folder) / f"checkpoint-{10 * number}/model.safetensors", weights).parent)
    return folders
