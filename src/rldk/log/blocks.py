"""The bytes of a file in blocks, decompressed where it is compressed, UTF-8 where it is UTF-16, in bounded memory."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from rldk.core.errors import ReadError
from rldk.log.problems import LineProblems

__all__ = ["BLOCK_BYTES", "Progress", "check_readable", "compression_of", "iter_blocks", "open_for_reading"]

Progress = Callable[[int, int], None]
"""Called with the bytes of the file consumed so far and its size (0 where that is not known, as of a pipe)."""

BLOCK_BYTES = 1 << 20
_GZIP_PIECE = 1 << 14  # 16 MiB at gzip's best ratio of 1:1030
_ZSTD_PIECE = 1 << 9  # 16 MiB at zstd's best, 128 KiB in 4 bytes


def compression_of(head: bytes) -> str | None:
    """`gzip`, `zstd` or `None`, by the first four bytes and never by the name."""
    if head.startswith(b"\x1f\x8b"):
        return "gzip"
    if head.startswith(b"\x28\xb5\x2f\xfd") or (head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5):
        return "zstd"  # the second is a skippable frame, which parallel compressors put first
    return None


def open_for_reading(path: Path) -> io.FileIO:
    """Open a file without a buffer; `ReadError` says why it cannot be read."""
    with _explained(path):
        if stat.S_ISDIR(path.stat().st_mode):
            raise ReadError(f"{path} is a folder: give the path of a file in it.")
        return io.FileIO(path)


def check_readable(path: Path) -> None:
    """Raise `ReadError` now for a file that cannot be read, rather than at the first line."""
    with _explained(path):
        if stat.S_ISFIFO(path.stat().st_mode):
            return  # opening a pipe takes from it
    open_for_reading(path).close()


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise ReadError(f"{path} does not exist: check the path.") from None
    except PermissionError:
        raise ReadError(f"{path} may not be read by this user: check its permissions (ls -l).") from None
    except (OSError, ValueError) as error:
        raise ReadError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def iter_blocks(path: Path, problems: LineProblems, progress: Progress | None = None) -> Iterator[bytes]:
    """Give the content of a file in blocks of about 1 MiB; damage ends it early and is noted in `problems`."""
    with open_for_reading(path) as file:
        blocks = _read(file, problems, progress)
        head = b""
        while len(head) < 4 and (block := next(blocks, b"")):
            head += block
        kind = compression_of(head)
        content = chain((head,), blocks)
        if kind == "gzip":
            yield from _decompress(content, lambda: zlib.decompressobj(31), _GZIP_PIECE, zlib.error, problems)
        elif kind == "zstd":
            import zstandard  # only where it is needed: `import rldk` must stay quick

            decoder = zstandard.ZstdDecompressor()
            yield from _decompress(content, decoder.decompressobj, _ZSTD_PIECE, zstandard.ZstdError, problems)
        elif head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            yield from _as_utf8(content)
        else:
            yield from content


def _as_utf8(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Text in UTF-16, as the shell of Windows writes it, in UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    for block in blocks:
        yield decoder.decode(block).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def _read(file: io.FileIO, problems: LineProblems, progress: Progress | None) -> Iterator[bytes]:
    consumed, total = 0, os.fstat(file.fileno()).st_size
    while True:
        try:
            block = file.read(BLOCK_BYTES)
        except OSError as error:
            problems.damage = f"reading stopped after {consumed} bytes: {error.strerror}"
            return
        if not block:
            return
        consumed += len(block)
        if progress is not None:
            progress(consumed, max(total, consumed) if total else 0)
        yield block


def _decompress(
    blocks: Iterator[bytes], begin: Callable[[], Any], piece_bytes: int, broken: type[Exception], problems: LineProblems
) -> Iterator[bytes]:
    """Feed a decoder in small pieces, since it gives all that is in one at once; a file may hold several streams."""
    stream = begin()
    for block in blocks:
        for start in range(0, len(block), piece_bytes):
            data = block[start : start + piece_bytes]
            while data := data.lstrip(b"\0") if stream.eof else data:  # zeros may pad a stream
                if stream.eof:
                    stream = begin()
                try:
                    content = stream.decompress(data)
                except broken as error:
                    problems.damage = f"the compressed data is damaged: {error}"
                    return
                for begin_at in range(0, len(content), BLOCK_BYTES):  # a few bytes may have unfolded to megabytes
                    yield content[begin_at : begin_at + BLOCK_BYTES]
                data = stream.unused_data if stream.eof else b""
    if not stream.eof:
        problems.damage = "the compressed data ends too early: the file was cut off, or is still being written"
