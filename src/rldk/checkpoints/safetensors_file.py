"""One safetensors file, read in pieces as they are needed.

Pieces are read into a buffer of the caller's and not through a memory map: a file that is cut off under a map ends the
process with SIGBUS, and this one may be the training. An open file stays readable when its folder is deleted, which is
what trainers do with old checkpoints.
"""

from __future__ import annotations

from io import SEEK_END, FileIO
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from rldk.checkpoints.dtypes import BITS, Array
from rldk.core.errors import ReadError
from rldk.core.jsonio import loads

__all__ = ["Entry", "SafetensorsFile"]

_MAX_HEADER = 100_000_000  # what the format itself allows
_WHAT_TO_DO = "Save it again, or leave it out"


class Entry(NamedTuple):
    """A tensor in a file: `begin` is where its bytes start in the file."""

    dtype: str
    shape: tuple[int, ...]
    begin: int

    @property
    def elements(self) -> int:
        return prod(self.shape)


class SafetensorsFile:
    """Names, types and shapes of the tensors in a file; their values by `read`."""

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
            raise ReadError(f"{self.path} has a header that is not one of safetensors ({error}). {_WHAT_TO_DO}.") from error
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


def size_of(entry: Entry) -> int:
    """Bytes of a tensor; 0 for a type of which nothing is known."""
    return (entry.elements * BITS.get(entry.dtype, 0) + 7) // 8
