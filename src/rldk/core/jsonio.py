"""JSON as logs really hold it: fast where it is strict, tolerant where it is not, and never losing a non-finite number."""

from __future__ import annotations

import json
import math
from typing import Any

import orjson

__all__ = ["dumps", "loads", "to_number", "to_step"]

_OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS


def loads(line: bytes) -> Any:
    """Parse one JSON text; `NaN` and `Infinity` tokens are read as numbers, bytes that are not UTF-8 as U+FFFD.

    Raises `ValueError` for anything else that is not JSON, deep nesting included.
    """
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        try:
            return json.loads(line.decode("utf-8", "replace"))
        except RecursionError:
            raise ValueError("nested too deeply") from None


def dumps(value: Any) -> bytes:
    """Write one JSON text on one line; non-finite numbers become the tokens `NaN` and `Infinity`, which `loads` reads.

    orjson writes a non-finite number as `null`, which would turn evidence into a gap: a text that has a `null` in it
    is written again by the slower standard encoder. What is not JSON at all is written as its `str`.
    """
    try:
        text = orjson.dumps(value, default=str, option=_OPTIONS)
    except (TypeError, ValueError):
        return json.dumps(value, default=_plain).encode()
    return json.dumps(value, default=_plain).encode() if b"null" in text else text


def _plain(value: Any) -> Any:
    """A numpy scalar or array as the standard encoder can write it; anything else as text."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def to_number(value: Any) -> float | None:
    """The number that `value` stands for, or `None` where it stands for none.

    Numbers written as text count (`"0.5"`, `"nan"`, `"-Infinity"`), and so do truth values and numpy scalars.
    """
    kind = type(value)
    if kind is float:
        return value  # type: ignore[no-any-return]
    if value is None or kind in (dict, list, tuple):
        return None
    if kind is str and "_" in value:
        return None  # float() takes "1_000"; no log means that
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return None


def to_step(value: Any) -> int | None:
    """The step that `value` stands for: `10`, `10.0` and `"10"` are 10; what is not a whole number is no step."""
    if type(value) is int:
        return value
    if isinstance(value, bool):
        return None
    number = to_number(value)
    if number is None or not math.isfinite(number) or number != int(number):
        return None
    return int(number)
