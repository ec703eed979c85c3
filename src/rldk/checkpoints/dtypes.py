"""Numbers as checkpoints store them, turned into float32 (float64 for F64) a piece at a time."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BITS", "FLOATS", "Array", "decode", "working_type"]

Array = NDArray[Any]

BITS: dict[str, int] = {
    "F64": 64, "F32": 32, "F16": 16, "BF16": 16, "F8_E4M3": 8, "F8_E5M2": 8,
    "I64": 64, "I32": 32, "I16": 16, "I8": 8, "U64": 64, "U32": 32, "U16": 16, "U8": 8, "BOOL": 8,
    "C64": 64, "F8_E8M0": 8, "F6_E2M3": 6, "F6_E3M2": 6, "F4": 4,
}  # fmt: skip
"""How many bits an element takes, by the name the safetensors format gives its type."""

FLOATS = ("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2")
"""The types that are measured. Integers and packed formats are quantised weights or counters, whose norm means nothing."""


def working_type(dtype: str) -> type[np.floating[Any]]:
    """The type in which values are compared: as precise as what is stored, and no wider than it must be."""
    return np.float64 if dtype == "F64" else np.float32


def decode(raw: Array, dtype: str, out: Array) -> Array:
    """The stored bytes as numbers: a view of them where that is possible, else written to `out`.

    `out` is an array of the working type, as long as the piece. Do not write to it between calls: for BF16 the low half of each
    number must stay 0.
    """
    if dtype in ("F32", "F64"):
        view: Array = raw.view(working_type(dtype))
        if view.dtype == out.dtype:
            return view
        np.copyto(out, view)
    elif dtype == "F16":
        _float16(raw, out)
    elif dtype == "BF16" and out.dtype == np.float32:
        np.left_shift(raw.view(np.uint16), 16, out=out.view(np.uint32), dtype=np.uint32)
    elif dtype == "BF16":
        np.copyto(out, (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32))
    else:
        np.take(_float8(dtype), raw, out=out if out.dtype == np.float32 else None)
        if out.dtype != np.float32:
            np.copyto(out, _float8(dtype)[raw])
    return out


def _float16(raw: Array, out: Array) -> None:
    """Move the bits of each number to where a float32 has them, and scale: several times as fast as numpy's conversion.

    The sign goes to the top, exponent and fraction below it, and 2**112 makes up for the other bias, subnormal numbers
    included. What was infinite or NaN comes out as 65536 or more; such a piece is left to numpy.
    """
    if out.dtype == np.float32:
        bits = out.view(np.int32)
        np.left_shift(raw.view(np.int16), 13, out=bits, dtype=np.int32)
        np.bitwise_and(bits, np.int32(-0x70002000), out=bits)
        np.multiply(out, np.float32(2.0**112), out=out)
        if out.max() < 65536.0 and out.min() > -65536.0:
            return
    np.copyto(out, raw.view(np.float16))


@cache
def _float8(dtype: str) -> Array:
    """All 256 values of an 8-bit float: E4M3 has no infinity and one NaN for each sign, E5M2 is a short float16."""
    codes = np.arange(256, dtype=np.uint16)
    if dtype == "F8_E5M2":
        return (codes << 8).view(np.float16).astype(np.float32)
    sign = np.where(codes & 0x80, -1.0, 1.0)
    exponent, fraction = (codes >> 3 & 0xF).astype(np.int64), (codes & 7).astype(np.float64)
    values = np.where(exponent, (1 + fraction / 8) * 2.0 ** (exponent - 7), fraction / 8 * 2.0**-6)
    values[(codes & 0x7F) == 0x7F] = np.nan
    return (sign * values).astype(np.float32)
