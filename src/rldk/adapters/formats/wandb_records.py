"""The envelope of W&B's `.wandb` files: LevelDB's log, records in chunks, chunks in blocks of 32 KiB.

The `wandb` package had a reader of it in Python until it moved that into its own server, which gives no rows back; what
is inside the records is left to the definitions that the package still has.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator

from rldk.log.problems import LineProblems

__all__ = ["MAGIC", "iter_records"]

MAGIC = b":W&B\xe1\xbe\x00"
_BLOCK = 32 << 10
_CHUNK = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_SEEDS = {kind: zlib.crc32(bytes([kind])) for kind in (_FULL, _FIRST, _MIDDLE, _LAST)}
_MAX_RECORD_BYTES = 64 << 20
_CUT_OFF = "the end of the file is cut off: its writer died, or is still at it"


def iter_records(pieces: Iterable[bytes], problems: LineProblems) -> Iterator[bytes]:
    """Give the whole records in order. A damaged chunk costs its record and the rest of its block."""
    parts: list[bytes] = []
    size = 0
    for number, (block, is_last) in enumerate(_blocks(pieces), 1):
        place = len(MAGIC) if number == 1 else 0
        while len(block) - place >= _CHUNK.size:
            check, length, kind = _CHUNK.unpack_from(block, place)
            start, end = place + _CHUNK.size, place + _CHUNK.size + length
            if not check and not length and not kind:  # room that was never written to
                break
            if end > len(block) and is_last and kind in _SEEDS:
                problems.damage = problems.damage or _CUT_OFF
                return
            chunk = block[start:end]
            if kind not in _SEEDS or len(chunk) < length or zlib.crc32(chunk, _SEEDS[kind]) != check:
                problems.add(number, "a chunk of this block is damaged: the rest of the block was left out")
                parts, size = [], 0
                break
            place = end
            if kind in (_FULL, _FIRST):
                parts, size = [chunk], length
            elif parts:
                parts.append(chunk)
                size += length
                if size > _MAX_RECORD_BYTES:
                    problems.add(number, f"a record of more than {_MAX_RECORD_BYTES >> 20} MiB was left out")
                    parts, size = [], 0
            if kind in (_FULL, _LAST) and parts:
                yield b"".join(parts)
                parts, size = [], 0
        else:
            if is_last and place < len(block) and any(block[place:]):
                problems.damage = problems.damage or _CUT_OFF
    if parts:
        problems.damage = problems.damage or _CUT_OFF


def _blocks(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """The content in blocks, and whether each is the last."""
    held = b""
    for piece in pieces:
        held += piece
        whole = (len(held) - 1) // _BLOCK * _BLOCK
        for start in range(0, whole, _BLOCK):
            yield held[start : start + _BLOCK], False
        held = held[whole:]
    if held:
        yield held, True
