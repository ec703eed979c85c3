"""Compares a tensor with the same tensor in earlier checkpoints, piece by piece, so that memory does not grow with the tensor.

Pieces are small enough to stay in a processor's cache while they are read, decoded, subtracted and summed. Sums of
squares go row by row, in rows so short that BLAS uses one thread, in float32 within a row and in float64 across rows. A piece
whose sum is not finite, or too large or small for float32, is computed again in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt

import numpy as np

from rldk.checkpoints.checkpoint import Checkpoint
from rldk.checkpoints.dtypes import BITS, Array, decode, working_type

__all__ = ["Beside", "Meter", "TensorMeasure"]

PIECE = 1 << 17
ROW = 1 << 13
_SAFE = (1e-30, 1e30)


@dataclass(slots=True)
class Beside:
    """A tensor compared with an earlier one: the norm of the difference, the earlier norm, and the share of numbers that changed.

    Norms are over the places where both are finite.
    """

    distance: float
    norm: float
    changed: float


@dataclass(slots=True)
class TensorMeasure:
    """The measures of one tensor. `norm` and `largest` are over its finite numbers; `beside` has one for each earlier one."""

    count: int
    norm: float
    largest: float
    nonfinite: int
    beside: list[Beside]


class _Sums:
    """The sums of one tensor: of the squares now, before, and of the difference, and the count of changed numbers."""

    __slots__ = ("changed", "high", "low", "nonfinite", "own", "their", "way")

    def __init__(self, others: int) -> None:
        self.own, self.nonfinite = 0.0, 0
        self.low = self.high = 0.0
        self.their, self.way = [0.0] * others, [0.0] * others
        self.changed = [0] * others


class Meter:
    """Measures tensors; keeps its buffers from one to the next. With a `stride` of n, it reads every n-th piece."""

    def __init__(self, stride: int = 1) -> None:
        self.stride = stride
        self._raw = [np.zeros(PIECE * 8, np.uint8) for _ in range(3)]
        self._out = {kind: [np.zeros(PIECE, kind) for _ in range(4)] for kind in (np.float32, np.float64)}
        self._mask = np.zeros(PIECE, np.bool_)

    def measure(self, name: str, current: Checkpoint, earlier: list[Checkpoint]) -> TensorMeasure:
        """Compare a tensor with that of at most two earlier checkpoints, which have it in the same shape."""
        sources = [current, *earlier]
        types = [source.entry(name).dtype for source in sources]
        kind = max((working_type(dtype) for dtype in types), key=lambda kind: np.dtype(kind).itemsize)
        count = current.entry(name).elements
        sums = _Sums(len(earlier))
        seen = 0
        for first in range(0, count, PIECE * self.stride):
            here = min(PIECE, count - first)
            seen += here
            whole = -(-here // ROW) * ROW  # padded with zeros, which do not change the sums
            raw = [self._raw[slot][: whole * BITS[dtype] // 8] for slot, dtype in enumerate(types)]
            for part, source, dtype in zip(raw, sources, types, strict=True):
                end = here * BITS[dtype] // 8
                source.read(name, first, part[:end])
                part[end:] = 0
            outs = self._out[kind]
            values = [decode(part, dtype, outs[slot][:whole]) for slot, (part, dtype) in enumerate(zip(raw, types, strict=True))]
            self._add(sums, values, outs[3][:whole])
            for other in range(len(earlier)):
                same_type = types[other + 1] == types[0]
                pair = (_bits(raw[0], types[0]), _bits(raw[other + 1], types[0])) if same_type else (values[0], values[other + 1])
                np.not_equal(*pair, out=self._mask[:whole])
                sums.changed[other] += int(np.count_nonzero(self._mask[:whole]))
        share = seen / count if count else 1.0
        return TensorMeasure(
            count,
            sqrt(sums.own / share),
            max(sums.high, -sums.low),
            sums.nonfinite,
            [
                Beside(sqrt(way / share), sqrt(their / share), changed / seen if seen else 0.0)
                for way, their, changed in zip(sums.way, sums.their, sums.changed, strict=True)
            ],
        )

    @staticmethod
    def _add(sums: _Sums, values: list[Array], difference: Array) -> None:
        own = _squares(values[0])
        if not isfinite(own):
            sums.nonfinite += int(np.count_nonzero(~np.isfinite(values[0])))
        if _trusted(own, values[0]):
            sums.own += own
            sums.high, sums.low = max(sums.high, float(values[0].max())), min(sums.low, float(values[0].min()))
        else:
            finite = values[0][np.isfinite(values[0])].astype(np.float64)
            sums.own += float(np.square(finite).sum())
            if finite.size:
                sums.high, sums.low = max(sums.high, float(finite.max())), min(sums.low, float(finite.min()))
        for other, theirs in enumerate(values[1:]):
            their = _squares(theirs)
            if isfinite(own) and isfinite(their):
                np.subtract(values[0], theirs, out=difference)
                way = _squares(difference)
                if _trusted(their, theirs) and _trusted(way, difference):
                    sums.their[other] += their
                    sums.way[other] += way
                    continue
            both = np.isfinite(values[0]) & np.isfinite(theirs)
            before = theirs[both].astype(np.float64)
            sums.their[other] += float(np.square(before).sum())
            sums.way[other] += float(np.square(values[0][both].astype(np.float64) - before).sum())


def _squares(values: Array) -> float:
    rows = values.reshape(-1, 1, ROW)
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.matmul(rows, rows.transpose(0, 2, 1)).sum(dtype=np.float64))


def _trusted(squares: float, values: Array) -> bool:
    """Whether float32 was enough for a sum of squares; a sum of 0 may be of numbers too small to square."""
    if squares == 0.0:
        return bool(values.max() == 0.0 and values.min() == 0.0)
    return _SAFE[0] < squares < _SAFE[1]


def _bits(raw: Array, dtype: str) -> Array:
    return raw.view(f"u{BITS[dtype] // 8}")
