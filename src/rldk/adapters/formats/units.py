"""What follows a number: `0.35%`, `5min`, `120 ms`, `12.3k`. One whose unit is not understood is not to be trusted."""

from __future__ import annotations

import re

from rldk.core.catalog import CATALOG, locate

__all__ = ["factor_of"]

_UNIT = re.compile(r"([%A-Za-z°µ]+(?:/[A-Za-z]+)?)|\s(%|ms|min|sec|seconds|minutes|hours|[kKMGT]i?B)(?=[\s,;|:)\]]|$)")
_SCALES = {"k": 1e3, "K": 1e3, "M": 1e6}
_SECONDS = {"ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0, "min": 60.0, "m": 60.0, "minutes": 60.0, "h": 3600.0}
_GIB = {"GB": 1.0, "GiB": 1.0, "G": 1.0, "MB": 2.0**-10, "MiB": 2.0**-10, "TB": 2.0**10}
_NEUTRAL = frozenset({"tok/s", "tokens/s", "it/s", "samples/s", "steps/s", "tokens", "tok", "nats", "steps", "x"})


def factor_of(after: str, key: str, framework: str | None = None) -> float | None:
    """What a number of the metric `key` is multiplied with, by the text after it; `None` if that is not understood."""
    match = _UNIT.match(after)
    if match is None:
        return 1.0
    unit = match.group(1) or match.group(2)
    place = locate(key, framework)
    entry = CATALOG.get(place.metric) if place is not None else None
    if unit == "%":
        return 1.0 if place is None or place.key.transform == "percent" or (entry and entry.unit == "%") else 0.01
    if unit in _NEUTRAL or entry is None:
        return 1.0 if unit in _NEUTRAL or unit in _SECONDS or unit in _GIB else None
    if unit in _SECONDS:
        return _SECONDS[unit] if entry.unit == "s" else _SECONDS[unit] / 60.0 if entry.unit == "min" else None
    if unit in _GIB:
        return _GIB[unit] if entry.unit == "GiB" else None
    return _SCALES.get(unit)
