"""What the dashboard's processes share: messages and answers over pipes, wanted notifications, an end with their parent."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any, BinaryIO, Protocol

import msgspec
import numpy as np

from rldk.core.errors import RLDKError
from rldk.core.jsonio import loads, to_number
from rldk.core.text import clean, escaped

__all__ = [
    "VARIABLE", "Answering", "answer_or_problem", "encoded", "end_with_parent", "is_orphan", "numbers", "options_of",
    "packed_options", "receive", "send", "serve_pipes",
]  # fmt: skip

logger = logging.getLogger("rldk")

VARIABLE = "RLDK_DASHBOARD_NOTIFY"
"""The environment variable with what to notify: an address may be a secret, which a command line would show to everybody."""

_LENGTH = struct.Struct("<Q")
_MAX_BYTES = 1 << 31
_MAX_DEPTH = 60
_LOOK_SECONDS = 0.25
_IDLE_SECONDS = 0.1
_NEXT_QUESTION_SECONDS = 0.01  # a page mostly asks several things in a row
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


def answer_or_problem(ask: Callable[[], dict[str, Any]], what: str) -> dict[str, Any]:
    """The answer to a question of a page; a problem is reported in `problem`, never raised."""
    try:
        return ask()
    except RLDKError as error:
        return {"problem": clean(error, 1000)}
    except OSError as error:
        return {"problem": f"The file cannot be read: {error.strerror or error}."}
    except Exception as error:  # a file that nobody thought of: this run is not shown, the others are
        logger.exception("The dashboard could not answer %s", what)
        return {"problem": f"It cannot be shown: {type(error).__name__}: {clean(error, 500)}"}


class Answering(Protocol):
    """Something that works by itself, a little at a time, and answers questions in between."""

    def work(self) -> bool:
        """Do a little; whether there is more to do at once."""

    def answer(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The answer to a question."""


def serve(reader: Answering, questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer questions until there are no more, and work in between."""
    asked: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def listen() -> None:
        try:
            while True:
                asked.put(receive(questions))
        except (EOFError, OSError, ValueError):
            asked.put(None)

    threading.Thread(target=listen, daemon=True).start()
    busy, answered = True, False
    while not is_orphan():
        try:
            question = asked.get(timeout=_NEXT_QUESTION_SECONDS if answered else 0.0 if busy else _IDLE_SECONDS)
        except queue.Empty:
            busy, answered = reader.work(), False
            continue
        if question is None:
            return
        send(answers, reader.answer(question["name"], question["arguments"]))
        answered = True


def serve_pipes(reader: Answering, at_end: Callable[[], None] = lambda: None) -> None:
    """Serve the process at the other end of standard input and output, and end with it."""
    if os.name == "posix":
        os.nice(10)  # training and browser come first
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a library prints must not get among the answers
    with contextlib.suppress(BrokenPipeError):
        serve(reader, sys.stdin.buffer, answers)
    at_end()
    os._exit(0)  # a thread may still be reading
