"""TensorFlow's record files, the envelope of TensorBoard events: `length, checksum, bytes, checksum`, again and again.

TensorBoard's own reader takes the checksums byte by byte in Python: 6 000 steps of ten scalars a second, and a tenth of
that with its conversion of each event. The same checks on a block at a time are ten times as fast; what is inside the
records is left to TensorBoard's own definitions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from rldk.adapters.formats.crc32c import masked_crc32c
from rldk.log.problems import LineProblems

__all__ = ["iter_records", "starts_with_event"]

_HEADER = struct.Struct("<QI")
_LEAST, _MOST = 9, 64 << 20
"""The bytes of an event: no less than its wall time, and no more than any that is worth waiting for."""


def starts_with_event(head: bytes) -> bool:
    """Whether a file begins with a record that holds an event: a sound header, and the field of the wall time first."""
    if len(head) <= _HEADER.size or head[_HEADER.size] != 0x09:
        return False
    length, check = _HEADER.unpack_from(head)
    return bool(_LEAST <= length <= _MOST and _check_of(length) == check)


def iter_records(blocks: Iterable[bytes], problems: LineProblems) -> Iterator[bytes]:
    """Give the sound records in order. A damaged one is left out; after a damaged header nothing can be found again."""
    held = b""
    number = offset = 0
    for block in blocks:
        held += block
        records, checks, used, sound = _cut(held)
        if records:
            for fits, record in zip((masked_crc32c(records) == checks).tolist(), records, strict=True):
                number += 1
                if fits:
                    yield record
                else:
                    problems.add(number, "the record's checksum does not fit: it was damaged")
        offset += used
        held = held[used:]
        if not sound:
            problems.damage = f"damaged at byte {offset}: what follows cannot be read"
            return
    if held and problems.damage is None:
        problems.damage = f"the last record is cut off after {len(held)} bytes: its writer died, or is still at it"


def _cut(data: bytes) -> tuple[list[bytes], npt.NDArray[np.uint32], int, bool]:
    """The records that the data begins with, their checksums, the bytes they take, and if the next header is sound."""
    records: list[bytes] = []
    ends: list[int] = []
    place, size, sound = 0, len(data), True
    unpack, check_of = _HEADER.unpack_from, _check_of
    while size - place >= 12:
        length, check = unpack(data, place)
        if not _LEAST <= length <= _MOST or check_of(length) != check:
            sound = False
            break
        end = place + 12 + length
        if end + 4 > size:
            break
        records.append(data[place + 12 : end])
        ends.append(end)
        place = end + 4
    octets = np.frombuffer(data, dtype=np.uint8)
    stored = octets[np.array(ends, dtype=np.int64)[:, None] + np.arange(4)]
    return records, stored.view("<u4").ravel(), place, sound


@lru_cache(maxsize=4096)
def _check_of(length: int) -> int:
    """The checksum of a header; the records of a file have few lengths."""
    return int(masked_crc32c([length.to_bytes(8, "little")])[0])
