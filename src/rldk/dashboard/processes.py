"""What the dashboard's processes share: messages over pipes, which notifications are wanted, an end with their parent process."""

from __future__ import annotations

import json
import os
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, BinaryIO

import msgspec
import numpy as np

from rldk.core.jsonio import loads, to_number
from rldk.core.text import escaped

__all__ = [
    "VARIABLE", "encoded", "end_with_parent", "is_orphan", "numbers", "options_of", "packed_options", "receive", "send",
]  # fmt: skip

VARIABLE = "RLDK_DASHBOARD_NOTIFY"
"""The environment variable with what to notify: an address may be a secret, which a command line would show to everybody."""

_LENGTH = struct.Struct("<Q")
_MAX_BYTES = 1 << 31
_MAX_DEPTH = 60
_LOOK_SECONDS = 0.25
_STARTED_BY = os.getppid()


def _pack(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value, dtype=np.float64).tobytes()
    if isinstance(value, np.generic):
        return value.item()
    return str(value)


_encode = msgspec.msgpack.Encoder(enc_hook=_pack).encode
_decode = msgspec.msgpack.Decoder().decode


def send(pipe: IO[bytes], message: Any) -> None:
    """Write a message, preceded by its length; arrays become bytes, which `numbers` reads. Nothing in it can be executed."""
    text = encoded(message)
    pipe.write(_LENGTH.pack(len(text)) + text)
    pipe.flush()


def encoded(message: Any) -> bytes:
    """A message as bytes. Logs hold text and numbers that no message can: half a surrogate pair is escaped, and a whole number
    beyond 64 bits becomes a float."""
    try:
        return _encode(message)
    except (UnicodeError, OverflowError, ValueError, TypeError, RecursionError):
        return _encode(_sendable(message))


def _sendable(value: Any, depth: int = 0) -> Any:
    if depth > _MAX_DEPTH:
        return "…"
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, dict):
        return {escaped(str(key)): _sendable(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, deque)):
        return [_sendable(inner, depth + 1) for inner in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return to_number(value)
    return value if value is None or isinstance(value, (bool, int, float, bytes, np.ndarray, np.generic)) else escaped(str(value))


def receive(pipe: IO[bytes]) -> Any:
    """Read a message; `EOFError` if the other side has ended."""
    (length,) = _LENGTH.unpack(_read(pipe, _LENGTH.size))
    if length > _MAX_BYTES:
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


def packed_options(notify: Sequence[str], severity: str) -> str:
    """Notifications and severity, for the environment of the process."""
    return json.dumps({"notify": list(notify), "on": severity})


def options_of(environment: Mapping[str, str]) -> tuple[list[str], str]:
    """What `packed_options` wrote; nothing to notify where it did not."""
    try:
        given = loads((environment.get(VARIABLE) or "{}").encode("utf-8", "replace"))
        return [str(name) for name in given.get("notify", ())], str(given.get("on", "critical"))
    except (ValueError, TypeError, AttributeError):
        return [], "critical"


def is_orphan() -> bool:
    """Whether the process that started this one has ended."""
    return os.getppid() != _STARTED_BY


def end_with_parent(pipe: BinaryIO, end: Callable[[], None]) -> None:
    """Call `end` once the parent has closed its side of `pipe`, or has ended.

    The pipe tells it at once. But it stays open while a child that the parent forked (a data loader) holds a copy of it,
    so the parent's process id is checked as well.
    """
    once = threading.Lock()

    def ended() -> None:
        if once.acquire(blocking=False):
            end()

    def read() -> None:
        while pipe.read(1):
            pass
        ended()

    def check_parent() -> None:
        while not is_orphan():
            time.sleep(_LOOK_SECONDS)
        ended()

    for watch in (read, check_parent):
        threading.Thread(target=watch, daemon=True).start()
