"""Reads a file that `torch.save` wrote: only its tensors, without running any code in it."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rldk.checkpoints.dtypes import BITS, Array
from rldk.checkpoints.safetensors_file import Entry
from rldk.core.errors import ReadError, require

__all__ = ["TorchFile"]

_NAMES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2", "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL",
}  # fmt: skip


class TorchFile:
    """Like `SafetensorsFile`, for a `.bin` or `.pt` file. It is loaded completely, and not mapped for the same reason."""

    def __init__(self, path: Path) -> None:
        self.path = path
        torch = require("torch", extra="trl", purpose=f"Reading {path.name}")
        try:
            self._tensors = dict(_tensors(_load(torch, path), torch))
        except pickle.UnpicklingError as error:
            raise ReadError(
                f"{path} holds more than tensors, so that loading it could run code. It is not read; save it as safetensors."
            ) from error
        except Exception as error:  # a damaged pickle may raise anything
            said = next(iter(str(error).splitlines()), "") or type(error).__name__
            raise ReadError(f"{path} cannot be read as a torch file: {said}.") from error
        self.entries = {
            name: Entry(_NAMES.get(str(tensor.dtype).removeprefix("torch."), str(tensor.dtype)), tuple(tensor.shape), 0)
            for name, tensor in self._tensors.items()
        }

    def read(self, name: str, first: int, into: Array) -> None:
        import torch

        width = BITS[self.entries[name].dtype] // 8
        piece = self._tensors[name].detach().reshape(-1)[first : first + into.size // width].contiguous()
        np.copyto(into, piece.view(torch.uint8).numpy())

    def close(self) -> None:
        self._tensors = {}


def _load(torch: Any, path: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an odd pickle; if it cannot be read that is an error
        return torch.load(path, map_location="cpu", weights_only=True)


def _tensors(value: Any, torch: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The tensors of a state dictionary, and of those inside it (`{"model": {...}}`)."""
    if not isinstance(value, Mapping):
        return
    for key, inner in value.items():
        if isinstance(inner, torch.Tensor):
            yield f"{prefix}{key}", inner
        else:
            yield from _tensors(inner, torch, f"{prefix}{key}.")
