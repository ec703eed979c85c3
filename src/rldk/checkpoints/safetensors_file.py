"""Reads a safetensors file in pieces, as they are needed, and writes one.

Pieces are read into a buffer of the caller, not through a memory map: if a mapped file is cut off, SIGBUS ends the process, which
may be the training. An open file stays readable when its folder is deleted, which is what trainers do with old checkpoints.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import SEEK_END, FileIO
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rldk.checkpoints.dtypes import BITS, Array
from rldk.core.errors import ReadError
from rldk.core.jsonio import loads

__all__ = ["Entry", "SafetensorsFile", "Weights", "write_safetensors"]

Weights = Mapping[str, Array]

_NAMES = {"float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "uint8": "U8", "bool": "BOOL"}
_MAX_HEADER = 100_000_000  # what the format itself allows
_WHAT_TO_DO = "Save it again or leave it out"


class Entry(NamedTuple):
    """A tensor in a file: `begin` is where its bytes start in the file."""

    dtype: str
    shape: tuple[int, ...]
    begin: int

    @property
    def elements(self) -> int:
        return prod(self.shape)


class SafetensorsFile:
    """Names, types and shapes of the tensors in a file; `read` reads their values."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = FileIO(path)
        except OSError as error:
            raise ReadError(f"{path} cannot be opened: {error.strerror}.") from error
        try:
            self.entries = self._header()
        except BaseException:
            self.close()
            raise

    def _header(self) -> dict[str, Entry]:
        whole = self._file.seek(0, SEEK_END)
        self._file.seek(0)
        start = self._file.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or length > _MAX_HEADER or not length:
            raise ReadError(f"{self.path} is not a safetensors file ({whole} bytes). {_WHAT_TO_DO}.")
        if 8 + length > whole:
            raise ReadError(f"{self.path} is cut off in its header: {whole} of at least {8 + length} bytes. {_WHAT_TO_DO}.")
        try:
            header = loads(self._file.read(length))
            entries = {name: self._entry(value, 8 + length) for name, value in header.items() if name != "__metadata__"}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ReadError(f"{self.path} has no valid safetensors header ({error}). {_WHAT_TO_DO}.") from error
        end = max((entry.begin + size_of(entry) for entry in entries.values()), default=0)
        if end > whole:
            raise ReadError(f"{self.path} is cut off: {whole} of {end} bytes. {_WHAT_TO_DO}.")
        return entries

    @staticmethod
    def _entry(value: Any, offset: int) -> Entry:
        begin, end = value["data_offsets"]
        shape = value["shape"]
        if not all(type(number) is int and number >= 0 for number in (begin, end, *shape)):
            raise ValueError(f"offsets {begin}–{end} and shape {shape} are not whole numbers")
        entry = Entry(str(value["dtype"]), tuple(shape), offset + begin)
        if entry.dtype in BITS and size_of(entry) != end - begin:
            raise ValueError(f"{end - begin} bytes for shape {shape} of {entry.dtype}")
        return entry

    def read(self, name: str, first: int, into: Array) -> None:
        """Fill `into` (bytes) with the elements of a tensor from number `first` on."""
        entry = self.entries[name]
        view = into.data
        place = entry.begin + first * BITS[entry.dtype] // 8
        try:
            self._file.seek(place)
            while view and (done := self._file.readinto(view)):
                view = view[done:]
        except OSError as error:
            raise ReadError(f"{self.path} cannot be read: {error.strerror}.") from error
        if view:
            raise ReadError(f"{self.path} was cut off while it was read, {len(view)} bytes before the end of {name}.")

    def close(self) -> None:
        """Close the file; its space is free again if it was deleted meanwhile."""
        self._file.close()


def write_safetensors(path: str | Path, weights: Weights, *, bfloat16: bool = False) -> Path:
    """Write a file in the safetensors format, with `bfloat16` float32 cut to BF16. The folder is created."""
    header, parts, offset = {}, [], 0
    for name, values in weights.items():
        short = bfloat16 and values.dtype == np.float32
        parts.append((values.view(np.uint32) >> 16).astype(np.uint16).tobytes() if short else values.tobytes())
        place = [offset, offset + len(parts[-1])]
        header[name] = {"dtype": "BF16" if short else _NAMES[str(values.dtype)], "shape": values.shape, "data_offsets": place}
        offset = place[1]
    text = json.dumps(header).encode()
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        file.writelines((len(text).to_bytes(8, "little"), text, *parts))
    return target


def size_of(entry: Entry) -> int:
    """Bytes of a tensor; 0 for an unknown type."""
    return (entry.elements * BITS.get(entry.dtype, 0) + 7) // 8
