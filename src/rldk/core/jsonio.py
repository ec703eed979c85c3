"""JSON as logs really hold it: fast where it is strict, tolerant where it is not, and never losing a non-finite number."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

__all__ = ["MAX_STEP", "dumps", "loads", "number_in", "plain", "to_number", "to_step"]

MAX_STEP = 2**63 - 1


def plain(value: Any) -> Any:
    """A numpy scalar or array as an encoder can write it; anything else as text."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(enc_hook=plain).encode


def loads(line: bytes | bytearray) -> Any:
    """Parse one JSON text; `NaN` and `Infinity` tokens are read as numbers, bytes that are not UTF-8 as U+FFFD.

    Raises `ValueError` for anything else that is not JSON, deep nesting included.
    """
    try:
        return _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            return json.loads(line.decode("utf-8", "replace"))
        except RecursionError:
            raise ValueError("nested too deeply") from None


def dumps(value: Any) -> bytes:
    """Write one JSON text on one line; non-finite numbers become the tokens `NaN` and `Infinity`, which `loads` reads.

    msgspec writes a non-finite number as `null`, which would turn evidence into a gap: a text that has a `null` in it
    is written again by the slower standard encoder. What is not JSON at all is written as its `str`.
    """
    try:
        text = _encode(value)
    except (TypeError, ValueError, msgspec.MsgspecError):
        return _encode_slowly(value)
    return _encode_slowly(value) if b"null" in text else text


def _encode_slowly(value: Any) -> bytes:
    try:
        return json.dumps(value, default=plain).encode()
    except TypeError:  # keys that JSON does not have
        return json.dumps(_with_text_keys(value), default=plain).encode()


def _with_text_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): _with_text_keys(inner) for key, inner in value.items()}
    return [_with_text_keys(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def number_in(value: Any) -> Any:
    """A tensor or a numpy array of one element as its number; anything else as it is."""
    if not hasattr(value, "item"):
        return value
    count = value.numel() if hasattr(value, "numel") else getattr(value, "size", 1)
    return value.item() if count == 1 else value


def to_number(value: Any) -> float | None:
    """The number that `value` stands for, or `None` where it stands for none.

    Numbers written as text count (`"0.5"`, `"nan"`, `"-Infinity"`), and so do truth values and numpy scalars.
    """
    kind = type(value)
    if kind is float:
        return value  # type: ignore[no-any-return]
    if value is None or kind in (dict, list, tuple) or isinstance(value, complex):
        return None
    if kind is str and "_" in value:
        return None  # float() takes "1_000"; no log means that
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError, RuntimeError):  # the last is what torch says of a tensor with several elements
        return None


def to_step(value: Any) -> int | None:
    """The step that `value` stands for: `10`, `10.0` and `"10"` are 10; what is not a whole number of 64 bits is not a step."""
    if type(value) is int:
        return value if -MAX_STEP - 1 <= value <= MAX_STEP else None
    if isinstance(value, bool):
        return None
    number = to_number(value)
    if number is None or not -MAX_STEP - 1 <= number <= MAX_STEP or number != int(number):
        return None
    return int(number)
