"""Hostile files and folders: each is read and judged within ten seconds and a gigabyte, or refused with a reason.

    python benchmarks/soak/files.py SECONDS SEED [KIND]
"""

from __future__ import annotations

import gzip
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import rldk.cli.main

MAX_SECONDS = 10.0
MAX_BYTES = 1 << 30


def main() -> None:
    seconds, seed = float(sys.argv[1]), int(sys.argv[2])
    kinds = [KINDS[name] for name in sys.argv[3:]] or list(KINDS.values())
    chance, counts, broken = random.Random(f"files {seed}"), Counter[str](), []
    most = [0.0, 0]
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        kind = kinds[number % len(kinds)]
        number += 1
        with tempfile.TemporaryDirectory() as folder:
            path = kind(Path(folder), chance)
            took, memory, status = scan(path)
        counts["hostile_files"] += 1
        most = [max(most[0], took), max(most[1], memory)]
        if status not in (0, 1, 2) or took > MAX_SECONDS or memory > MAX_BYTES:
            counts["files_beyond_the_limits"] += 1
            broken.append(f"{kind.__name__}: status {status}, {took:.1f} s of processor time, {memory >> 20} MB")
    print(json.dumps({**counts, "most_file_seconds": most[0], "most_file_megabytes": most[1] >> 20, "broken": broken[:20]}))


def scan(path: Path) -> tuple[float, int, int]:
    """Processor time, memory and status of `rldk scan` on a path, in a forked process. Twice the limits kill it."""
    child = os.fork()
    if not child:
        devnull = os.open(os.devnull, os.O_RDWR)
        for one in (0, 1, 2):
            os.dup2(devnull, one)
        resource.setrlimit(resource.RLIMIT_CPU, (int(2 * MAX_SECONDS), int(2 * MAX_SECONDS)))
        resource.setrlimit(resource.RLIMIT_AS, (4 * MAX_BYTES, 4 * MAX_BYTES))
        signal.alarm(120)  # one that only waits, as for a pipe
        status = 70
        try:
            status = int(rldk.cli.main.main(["scan", str(path), "--json", "--jobs", "1"]) or 0)
        except SystemExit as end:
            status = int(end.code or 0) if isinstance(end.code, int) else 2
        finally:
            os._exit(status)
    _, status, used = os.wait4(child, 0)
    ended = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime, used.ru_maxrss << 10, ended


def _rows(chance: random.Random, count: int) -> list[dict[str, float]]:
    return [{"step": n, "loss": chance.random(), "reward": chance.random(), "kl": 0.1} for n in range(1, count)]


def _put(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


_PIECES = [b"\0", b"\xff", b"\n", b'"', b"{", b"]", b"1e999", b"-9" * 300, b"\xed\xa0\x80", b"\\ud800"]
_NAMES = ["log.jsonl", "trainer_state.json", "m.csv", "run.log", "x.txt", "b.parquet", "events.out.tfevents.1", "n.ipynb"]


def mutated(folder: Path, chance: random.Random) -> Path:
    forms = [
        "\n".join(map(json.dumps, _rows(chance, 40))),
        json.dumps({"log_history": _rows(chance, 40)}),
        "step,loss,reward\n" + "\n".join(f"{n},0.{n},{n}.5" for n in range(40)),
        "\n".join(f"step:{n} - actor/pg_loss:0.{n} - critic/score/mean:0.5" for n in range(40)),
        "\n".join(str(row) for row in _rows(chance, 40)),
    ]
    data = bytearray(chance.choice(forms).encode())
    for _ in range(chance.randrange(1, 30)):
        at = chance.randrange(len(data))
        what = chance.randrange(4)
        if what == 0:
            data[at : at + chance.randrange(20)] = b""
        elif what == 1:
            data[at:at] = chance.choice(_PIECES)
        elif what == 2:
            data[at : at + 4] = chance.randbytes(4)
        else:
            data[at:at] = data[: chance.randrange(200)]
        data = data or bytearray(b"x")
    return _put(folder / chance.choice(_NAMES), bytes(data))


def noise(folder: Path, chance: random.Random) -> Path:
    names = ["a.jsonl", "a.parquet", "a.csv", "a.wandb", "events.out.tfevents.9", "a.db", "a.json.gz", "a.ipynb", "a.bin"]
    head = chance.choice([b"", b"PAR1", b"SQLite format 3\0", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b":W&B", b"\xff\xfe"])
    return _put(folder / chance.choice(names), head + chance.randbytes(chance.randrange(200_000)))


def new_keys(folder: Path, chance: random.Random) -> Path:
    rows = chance.choice([2_000, 20_000, 200_000])
    with (folder / "log.jsonl").open("w") as file:
        for n in range(rows):
            file.write(f'{{"step": {n}, "loss": 0.5, "key_{n}": {n}}}\n')
    return folder / "log.jsonl"


def wide_row(folder: Path, chance: random.Random) -> Path:
    keys = chance.choice([5_000, 50_000, 500_000])
    row = ",".join(f'"k{n}": {n}' for n in range(keys))
    return _put(folder / "log.jsonl", b"".join(f'{{"step": {n}, {row}}}\n'.encode() for n in range(3)))


def wide_table(folder: Path, chance: random.Random) -> Path:
    columns = chance.choice([1_000, 30_000, 300_000])
    lines = [",".join(["step", *(f"c{n}" for n in range(columns))])] + [",".join([str(n), *["1"] * columns]) for n in range(3)]
    return _put(folder / "m.csv", "\n".join(lines).encode())


def bomb(folder: Path, chance: random.Random) -> Path:
    """A small file that unfolds to a gigabyte or more."""
    inside = chance.choice([b"\n", b" ", b"[", b"0", b'{"step": 1, "loss": 0.5}\n', b'{"a":'])
    many = chance.choice([1 << 24, 1 << 27, 1 << 30]) // len(inside)
    with gzip.open(folder / chance.choice(["log.jsonl.gz", "state.json.gz", "run.log.gz", "m.csv.gz"]), "wb", 1) as file:
        block = inside * (1 << 16)
        for _ in range(max(1, many >> 16)):
            file.write(block)
    return next(folder.iterdir())


def newlines(folder: Path, chance: random.Random) -> Path:
    with (folder / chance.choice(["run.log", "a.jsonl", "a.csv"])).open("wb") as file:
        block = chance.choice([b"\n", b"\r\n", b" \n", b"\0"]) * (1 << 20)
        for _ in range(chance.choice([1, 16, 128])):
            file.write(block)
    return next(folder.iterdir())


def slow_text(folder: Path, chance: random.Random) -> Path:
    """Lines that make a careless regular expression quadratic."""
    pieces = [" ", "a", "1", "=", ": ", "{'", "-", "1,", "step ", "e", "(", "|", "[", "0.1 ", "'a': ", "loss=", "%|", "\t", "1e"]
    line = chance.choice(pieces) * chance.choice([1_000, 20_000, 200_000])
    if chance.random() < 0.5:
        line += chance.choice(pieces) * 20_000
    starts = ["", "{'loss': ", "step: 1 loss: 0.5 ", "Epoch 1/3 ", "{", "| loss | ", " 10%|"]
    text = "\n".join(chance.choice(starts) + line for _ in range(chance.choice([1, 3, 20])))
    return _put(folder / chance.choice(["run.log", "a.jsonl", "a.csv", "a.json", "a.md"]), text[: 8 << 20].encode())


def deep(folder: Path, chance: random.Random) -> Path:
    depth = chance.choice([500, 5_000, 100_000, 5_000_000])
    pair = chance.choice([("[", "]"), ('{"a":', "}")])
    return _put(folder / chance.choice(["a.json", "a.jsonl", "a.ipynb"]), (pair[0] * depth + "1" + pair[1] * depth).encode())


def large_document(folder: Path, chance: random.Random) -> Path:
    rows = chance.choice([1_000, 100_000, 400_000])
    text = ",".join(f'{{"step":{n},"loss":0.5,"note":"{"x" * 20}"}}' for n in range(rows))
    return _put(folder / "trainer_state.json", f'{{"log_history":[{text}]}}'.encode())


def odd_numbers(folder: Path, chance: random.Random) -> Path:
    numbers = ["1e999", "-1e999", "9" * 400, "9" * 5000, "NaN", "Infinity", "0x10", "1_000", str(2**63), "null", '"\\ud800"']
    steps = [chance.choice([str(n), *numbers]) for n in range(200)]
    rows = [f'{{"step": {step}, "loss": {chance.choice(numbers)}, "\\ud800{n}": 1}}' for n, step in enumerate(steps)]
    return _put(folder / "log.jsonl", "\n".join(rows).encode())


def parquet(folder: Path, chance: random.Random) -> Path:
    """A table that is small on disk and large when it is read."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return odd_numbers(folder, chance)
    rows = chance.choice([10_000, 1_000_000, 20_000_000])
    steps = pa.array(range(rows)) if rows <= 10_000 else pa.repeat(pa.scalar(1), rows)
    columns = {"step": steps} | {f"c{n}": pa.repeat(pa.scalar(0.5), rows) for n in range(chance.choice([3, 10]))}
    if chance.random() < 0.5:
        columns["text"] = pa.repeat(pa.scalar("x" * (1000 if rows <= 10_000 else 1)), rows)
    pq.write_table(pa.table(columns), folder / "m.parquet", compression="zstd")
    return folder / "m.parquet"


def odd_folder(folder: Path, chance: random.Random) -> Path:
    """Loops of links, pipes, devices, sockets, and names that are not UTF-8, around a log."""
    _put(folder / "run.jsonl", "\n".join(map(json.dumps, _rows(chance, 30))).encode())
    (folder / "loop").symlink_to(folder)
    (folder / "self").symlink_to("self")
    (folder / "gone.jsonl").symlink_to("nowhere")
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "zero.jsonl").symlink_to("/dev/zero")
    (folder / "tty.log").symlink_to("/dev/tty")
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff\xfe")).mkdir()
    _put(Path(os.fsdecode(os.fsencode(folder) + b"/\xff.jsonl")), (folder / "run.jsonl").read_bytes())
    inside = folder
    for _ in range(chance.choice([1, 30])):
        inside = inside / "sub"
        inside.mkdir()
        (inside / "up").symlink_to("..")
    _put(folder / "secret.jsonl", b"{}").chmod(0)
    return chance.choice([folder, folder, folder / "pipe.jsonl", folder / "zero.jsonl", folder / "loop", folder / "self"])


Kind = Callable[[Path, random.Random], Path]
KINDS: dict[str, Kind] = {
    kind.__name__: kind
    for kind in (
        mutated, noise, new_keys, mutated, wide_row, noise, wide_table, mutated, bomb, newlines, mutated, slow_text, deep,
        large_document, odd_numbers, parquet, odd_folder,
    )
}  # fmt: skip


if __name__ == "__main__":
    main()
