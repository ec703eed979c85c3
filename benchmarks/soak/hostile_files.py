"""Hostile files and folders, made from a seed: each function puts one into a folder and returns the path to read."""

from __future__ import annotations

import gzip
import json
import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

from hostile_folders import FOLDERS
from hostile_stores import STORES
from small_logs import NAMES, in_some_format, put, rows

Kind = Callable[[Path, random.Random], Path]

_PIECES = [b"\0", b"\xff", b"\n", b'"', b"{", b"]", b"1e999", b"-9" * 300, b"\xed\xa0\x80", b"\\ud800", b"\r", b"\x1b[2J", b"=1"]


def mutated(folder: Path, chance: random.Random) -> Path:
    data = bytearray(in_some_format(chance))
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
    return put(folder / chance.choice(NAMES), bytes(data))


def torn(folder: Path, chance: random.Random) -> Path:
    """Cut anywhere, with a block of zeros after it, or with the middle of another log behind."""
    data, other = in_some_format(chance), in_some_format(chance)
    cut = data[: chance.randrange(len(data))]
    ends = [b"", b"\0" * chance.choice([1, 4096, 1 << 20]), other[chance.randrange(len(other)) :], data]
    return put(folder / chance.choice(NAMES), cut + chance.choice(ends))


def noise(folder: Path, chance: random.Random) -> Path:
    names = ["a.jsonl", "a.parquet", "a.csv", "a.wandb", "events.out.tfevents.9", "a.db", "a.json.gz", "a.ipynb", "a.bin", "a"]
    heads = [b"", b"PAR1", b"SQLite format 3\0", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b":W&B", b"\xff\xfe", b"PK\x03\x04"]
    return put(folder / chance.choice(names), chance.choice(heads) + chance.randbytes(chance.randrange(200_000)))


def other_encoding(folder: Path, chance: random.Random) -> Path:
    text = in_some_format(chance).decode().replace("loss", chance.choice(["loss", "перда", "損失", "pérte", "\U0001f4a5"]))
    kind = chance.choice(["utf-16", "utf-32", "utf-16-be", "latin-1", "cp1251", "shift-jis", "utf-8-sig", "utf-7", "cp500"])
    return put(folder / chance.choice(NAMES), text.encode(kind, "replace"))


def long_line(folder: Path, chance: random.Random) -> Path:
    """One line of megabytes, before, between or after the rows."""
    piece = chance.choice([b"x", b"9", b" ", b'{"a":', b'"', b"1,", b"\\", b"\0", b'{"step": 1, "loss": 0.5},'])
    line = piece * (chance.choice([1 << 20, 8 << 20, 80 << 20]) // len(piece))
    lines = [json.dumps(row).encode() for row in rows(chance, 30)]
    lines.insert(chance.choice([0, 15, 29]), chance.choice([b"", b'{"step": 3, "loss": "']) + line)
    return put(folder / chance.choice(["log.jsonl", "run.log", "m.csv", "trainer_state.json"]), b"\n".join(lines))


def new_keys(folder: Path, chance: random.Random) -> Path:
    count = chance.choice([2_000, 2_000, 20_000, 200_000])
    text = "".join(f'{{"step": {n}, "loss": 0.5, "key_{n}": {n}}}\n' for n in range(count))
    return put(folder / "log.jsonl", text.encode())


def wide_row(folder: Path, chance: random.Random) -> Path:
    row = ",".join(f'"k{n}": {n}' for n in range(chance.choice([5_000, 5_000, 50_000, 500_000])))
    return put(folder / "log.jsonl", b"".join(f'{{"step": {n}, {row}}}\n'.encode() for n in range(3)))


def wide_table(folder: Path, chance: random.Random) -> Path:
    columns = chance.choice([1_000, 30_000, 300_000])
    lines = [",".join(["step", *(f"c{n}" for n in range(columns))])] + [",".join([str(n), *["1"] * columns]) for n in range(3)]
    return put(folder / "m.csv", "\n".join(lines).encode())


def bomb(folder: Path, chance: random.Random) -> Path:
    """A small file that unfolds to gigabytes: the same compressed piece again and again."""
    inside = chance.choice([b"\n", b" ", b"[", b"0", b'{"step": 1, "loss": 0.5}\n', b'{"a":', b"\0", b"1,", b"\r\n"])
    piece = gzip.compress(inside * ((8 << 20) // len(inside)), 6, mtime=0)
    name = chance.choice(["log.jsonl.gz", "state.json.gz", "run.log.gz", "m.csv.gz", "x_events.jsonl.gz"])
    head = gzip.compress(in_some_format(chance)) if chance.random() < 0.5 else b""
    return put(folder / name, head + piece * chance.choice([2, 16, 128, 512]))


def newlines(folder: Path, chance: random.Random) -> Path:
    block = chance.choice([b"\n", b"\r\n", b" \n", b"\0", b"\r"]) * (1 << 20)
    return put(folder / chance.choice(["run.log", "a.jsonl", "a.csv"]), block * chance.choice([1, 4, 64]))


def sparse(folder: Path, chance: random.Random) -> Path:
    """Gigabytes of zeros that take no space on the disk, before or after some rows."""
    path = folder / chance.choice(NAMES)
    size = chance.choice([1 << 24, 1 << 30, 4 << 30, 64 << 30])
    with path.open("wb") as file:
        if chance.random() < 0.7:
            file.write(in_some_format(chance))
        file.truncate(size)
        if chance.random() < 0.3:
            file.seek(0, 2)
            file.write(in_some_format(chance))
    return path


def slow_text(folder: Path, chance: random.Random) -> Path:
    """Lines that make a careless regular expression quadratic."""
    pieces = [" ", "a", "1", "=", ": ", "{'", "-", "1,", "step ", "e", "(", "|", "[", "0.1 ", "'a': ", "loss=", "%|", "\t", "1e"]
    line = chance.choice(pieces) * chance.choice([1_000, 20_000, 200_000])
    if chance.random() < 0.5:
        line += chance.choice(pieces) * 20_000
    starts = ["", "{'loss': ", "step: 1 loss: 0.5 ", "Epoch 1/3 ", "{", "| loss | ", " 10%|"]
    text = "\n".join(chance.choice(starts) + line for _ in range(chance.choice([1, 3, 20])))
    return put(folder / chance.choice(["run.log", "a.jsonl", "a.csv", "a.json", "a.md"]), text[: 8 << 20].encode())


def deep(folder: Path, chance: random.Random) -> Path:
    depth = chance.choice([500, 5_000, 100_000, 5_000_000])
    start, end = chance.choice([("[", "]"), ('{"a":', "}"), ('{"step":1,"loss":[', "]}"), ("(", ")"), ("{'a':", "}")])
    text = (start * depth + "1" + end * depth).encode()
    if chance.random() < 0.5:
        text = b"\n".join([in_some_format(chance), text])
    return put(folder / chance.choice(["a.json", "a.jsonl", "a.ipynb", "run.log", "trainer_state.json"]), text)


def large_document(folder: Path, chance: random.Random) -> Path:
    count = chance.choice([1_000, 1_000, 100_000, 400_000])
    text = ",".join(f'{{"step":{n},"loss":0.5,"note":"{"x" * 20}"}}' for n in range(count))
    return put(folder / "trainer_state.json", f'{{"log_history":[{text}]}}'.encode())


_NUMBERS = [
    "1e999", "-1e999", "9" * 400, "9" * 5000, "NaN", "Infinity", "0x10", "1_000", str(2**63), str(-(2**63) - 1), "1e308", "null",
    "5e-324", '"\\ud800"', "true", "[]", "{}", '"nan"', '"1e400"', "-0", "0.1e", "٣",
]  # fmt: skip


def odd_numbers(folder: Path, chance: random.Random) -> Path:
    steps = [chance.choice([str(n), str(n), *_NUMBERS]) for n in range(200)]
    text = [f'{{"step": {step}, "loss": {chance.choice(_NUMBERS)}, "\\ud800{n}": 1}}' for n, step in enumerate(steps)]
    return put(folder / "log.jsonl", "\n".join(text).encode())


_TEXTS = ["\ud800", "\ud83d", "\x1b[2J", "<script>", "=1+1", "\0", "a" * 10_000, "‮", "\n", "a/../../b", "{{7*7}}", ""]


def odd_events(folder: Path, chance: random.Random) -> Path:
    """An event log with odd steps, ids, keys and samples, and files of the run beside it that hold odd numbers."""
    lines = []
    for n in range(60):
        odd = chance.choice(_TEXTS)
        event = {
            "step": n, "wall_time": float(n), "metrics": {"reward_mean": 0.1, "kl_mean": 0.01, odd: 1.0},
            "model_info": {"run_id": chance.choice(["run", odd]), "phase": "train"}, "notes": [odd],
            "samples": [{"prompt": odd, "completion": odd, "reward": 1.0}],
        }  # fmt: skip
        line = json.dumps(event)
        if chance.random() < 0.3:
            field = chance.choice(['"step": ', '"reward_mean": ', '"wall_time": '])
            line = line.replace(field, f"{field}{chance.choice(_NUMBERS)}, \"x\": ", 1)
        lines.append(line)
    number = chance.choice(_NUMBERS)
    for name in ("alerts", "health_summary", "final_report", "config", "comprehensive_metrics"):
        key = number.strip('"')
        content = f'[{{"step": {number}, "message": "\\ud800", "value": {number}, "{key}": {{"a": [{number}]}}}}]'
        put(folder / f"run_{name}.json", content.encode())
    put(folder / "run_checkpoint_summary.csv", f"step,a\0b\n{number},=1+1\n".encode())
    put(folder / "run_events.jsonl", "\n".join(lines).encode())
    return folder / "run_events.jsonl" if chance.random() < 0.5 else folder


def formulas(folder: Path, chance: random.Random) -> Path:
    cell = chance.choice(["=cmd|' /C calc'!A0", "+1+1", "@SUM(1)", "-2+3", "\t=1", '"=1,2"', '=HYPERLINK("x")'])
    lines = [f"step,loss,{cell},reward"] + [f"{n},{chance.choice(['0.5', cell])},{cell},{n}.5" for n in range(40)]
    return put(folder / "m.csv", "\n".join(lines).encode())


def png_text(folder: Path, chance: random.Random) -> Path:
    """Another kind of file under the name of a log."""
    chunk = b"IHDR" + struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    picture = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk))
    kinds = [picture, b"%PDF-1.7\n" + b"1 0 obj\n" * 1000, b"\x7fELF" + b"\0" * 4000, b"<html>" + b"<td>1</td>" * 5000]
    return put(folder / chance.choice(NAMES), chance.choice(kinds))


KINDS: dict[str, Kind] = {
    kind.__name__: kind
    for kind in (
        mutated, torn, noise, other_encoding, long_line, new_keys, wide_row, wide_table, bomb, newlines, sparse, slow_text, deep,
        large_document, odd_numbers, odd_events, formulas, png_text, *STORES, *FOLDERS,
    )
}  # fmt: skip
"""The kinds of files, by name."""

_QUICK = ["mutated", "torn", "noise", "other_encoding", "odd_numbers", "odd_events"]
ORDER = [name for kind in KINDS for name in ([kind] if kind in _QUICK else [kind, *_QUICK[len(kind) % 5 :][:2]])]
"""The order in which they come: those that are quickly made and read come more often."""
