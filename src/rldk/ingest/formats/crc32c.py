"""CRC-32C of many byte strings at once: the checksum of TensorFlow's record files, at the speed of numpy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import repeat

import numpy as np
import numpy.typing as npt

__all__ = ["masked_crc32c"]

_WIDTH = 64
Words = npt.NDArray[np.uint32]


def masked_crc32c(texts: Sequence[bytes]) -> Words:
    """The masked checksum of each text as record files store it; every text has at least four bytes.

    The texts are cut into rows of 64 bytes, zeros in front, which all go through the byte loop together; since the
    checksum is linear, the rows of one text are then joined in pairs.
    """
    lengths = np.array(list(map(len, texts)), dtype=np.int64)
    rows = -(-lengths // _WIDTH)
    padded = bytearray().join(map(bytes.rjust, texts, (rows * _WIDTH).tolist(), repeat(b"\0")))
    data = np.frombuffer(padded, dtype=np.uint8)
    starts = np.cumsum(rows) * _WIDTH - lengths
    for offset in range(4):
        data[starts + offset] ^= 0xFF  # the register starts with all bits set
    states = _run(np.zeros(len(data) // _WIDTH, dtype=np.uint32), data.reshape(-1, _WIDTH))
    crc = np.empty(len(texts), dtype=np.uint32)
    firsts = np.cumsum(rows) - rows
    for count in np.unique(rows).tolist():
        chosen = np.flatnonzero(rows == count)
        crc[chosen] = _join(states[firsts[chosen][:, None] + np.arange(count)])
    crc ^= np.uint32(0xFFFFFFFF)
    masked: Words = ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(0xA282EAD8)
    return masked


def _run(states: Words, columns: npt.NDArray[np.uint8]) -> Words:
    """Feed each register its row, byte by byte."""
    table = _byte_table()
    for place in range(columns.shape[1]):
        states = table[(states ^ columns[:, place]) & 0xFF] ^ (states >> np.uint32(8))
    return states


def _join(parts: Words) -> Words:
    """Registers of the rows of each text (along the second axis) into that of the whole text."""
    level = 0
    while parts.shape[1] > 1:
        if parts.shape[1] % 2:
            parts = np.pad(parts, ((0, 0), (1, 0)))
        parts = _shift(parts[:, 0::2], level) ^ parts[:, 1::2]
        level += 1
    return parts[:, 0]


def _shift(states: Words, level: int) -> Words:
    """The registers after `64 << level` zero bytes more."""
    return _apply(_shift_table(level), states)


def _apply(table: Words, states: Words) -> Words:
    low, second, third, high = (table[place][(states >> np.uint32(8 * place)) & 0xFF] for place in range(4))
    moved: Words = low ^ second ^ third ^ high
    return moved


@cache
def _byte_table() -> Words:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> np.uint32(1)) ^ np.uint32(0x82F63B78), table >> np.uint32(1))
    return table


@cache
def _shift_table(level: int) -> Words:
    if level == 0:
        states = np.stack([np.arange(256, dtype=np.uint32) << np.uint32(8 * place) for place in range(4)])
        return _run(states.ravel(), np.zeros((1024, _WIDTH), dtype=np.uint8)).reshape(4, 256)
    half = _shift_table(level - 1)
    return _apply(half, half)
