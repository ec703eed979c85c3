"""What the page and its reader say to each other: messages of a known length, and nothing that could be run."""

from __future__ import annotations

import struct
from typing import IO, Any

import msgspec
import numpy as np

__all__ = ["numbers", "receive", "send"]

_LENGTH = struct.Struct("<Q")
_MOST = 1 << 31


def _pack(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value, dtype=np.float64).tobytes()
    if isinstance(value, np.generic):
        return value.item()
    return str(value)


_encode = msgspec.msgpack.Encoder(enc_hook=_pack).encode
_decode = msgspec.msgpack.Decoder().decode


def send(pipe: IO[bytes], message: Any) -> None:
    """Write a message; arrays become the bytes of their numbers, which `numbers` reads."""
    text = _encode(message)
    pipe.write(_LENGTH.pack(len(text)) + text)
    pipe.flush()


def receive(pipe: IO[bytes]) -> Any:
    """Read a message; `EOFError` where the other side is gone."""
    (length,) = _LENGTH.unpack(_read(pipe, _LENGTH.size))
    if length > _MOST:
        raise EOFError(f"a message of {length} bytes")
    return _decode(_read(pipe, length))


def _read(pipe: IO[bytes], size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = pipe.read(size - len(parts))
        if not part:
            raise EOFError("the other side has ended")
        parts += part
    return bytes(parts)


def numbers(data: bytes) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The array that a message holds."""
    return np.frombuffer(data, dtype=np.float64)
