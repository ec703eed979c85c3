"""Hostile databases, tables, archives and record files."""

from __future__ import annotations

import io
import json
import random
import sqlite3
import struct
import tarfile
import zipfile
from pathlib import Path

from small_logs import in_some_format, put, rows

__all__ = ["STORES"]


def parquet(folder: Path, chance: random.Random) -> Path:
    """A table that is small on disk and large when it is read."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        return put(folder / "m.parquet", b"PAR1")
    count = chance.choice([10_000, 10_000, 1_000_000, 20_000_000])
    steps = pa.array(range(count)) if count <= 10_000 else pa.repeat(pa.scalar(1), count)
    columns = {"step": steps} | {f"c{n}": pa.repeat(pa.scalar(0.5), count) for n in range(chance.choice([3, 10]))}
    if chance.random() < 0.5:
        columns["text"] = pa.repeat(pa.scalar("x" * (1000 if count <= 10_000 else 1)), count)
    if chance.random() < 0.3 and count <= 1_000_000:
        columns["list"] = pa.repeat(pa.scalar([1.0] * 10), count)
    pq.write_table(pa.table(columns), folder / "m.parquet", compression="zstd")
    return folder / "m.parquet"


def mutated_parquet(folder: Path, chance: random.Random) -> Path:
    path = parquet(folder, random.Random(chance.randrange(2)))
    data = bytearray(path.read_bytes()[: 1 << 20])
    for _ in range(chance.randrange(1, 10)):
        data[chance.randrange(len(data)) - 1] = chance.randrange(256)
    return put(path, bytes(data[: chance.choice([len(data), chance.randrange(1, len(data))])]))


def database(folder: Path, chance: random.Random) -> Path:
    """A database of trackio or MLflow whose table is a view without an end, or holds what no row has."""
    path = folder / chance.choice(["project.db", "mlflow.db", "a.sqlite"])
    connection = sqlite3.connect(path)
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"
    kind = chance.choice(["trackio view", "trackio", "mlflow view", "mlflow", "cut"])
    values = [None, "x", b"\xff", 2**63 - 1, -1, 1e308, float("inf"), '{"loss": 1e999}', "[" * 5000, b"\xed\xa0\x80"]
    if kind == "trackio view":
        columns = "i AS id, 't' AS timestamp, 'r' AS run_name, i AS step, '{\"loss\": 1}' AS metrics FROM n"
        connection.execute(f"CREATE VIEW metrics AS {endless} {columns}")
    elif kind == "mlflow view":
        connection.execute("CREATE TABLE runs (run_uuid, name, start_time, experiment_id, lifecycle_stage)")
        connection.execute("INSERT INTO runs VALUES ('r', 'r', 1, 1, 'active')")
        columns = "'loss' AS key, 0.5 AS value, i AS timestamp, 'r' AS run_uuid, i AS step, 0 AS is_nan FROM n"
        connection.execute(f"CREATE VIEW metrics AS {endless} {columns}")
    elif kind == "mlflow":
        connection.execute("CREATE TABLE runs (run_uuid, name, start_time, experiment_id, lifecycle_stage)")
        connection.execute("CREATE TABLE metrics (key, value, timestamp, run_uuid, step, is_nan)")
        for _ in range(200):
            row = [chance.choice([*values, "r", "loss"]) for _ in range(6)]
            connection.execute("INSERT INTO metrics VALUES (?,?,?,?,?,?)", row)
        connection.execute("INSERT INTO runs VALUES (?,?,?,?,?)", [chance.choice([*values, "r"]) for _ in range(5)])
    else:
        connection.execute("CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp, run_name, step, metrics)")
        for _ in range(200):
            row = [chance.choice([*values, "r"]) for _ in range(4)]
            connection.execute("INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES (?,?,?,?)", row)
    connection.commit()
    connection.close()
    if kind == "cut":
        data = bytearray(path.read_bytes())
        data[chance.randrange(100, len(data)) :][:50] = chance.randbytes(50)
        put(path, bytes(data[: chance.randrange(100, len(data))]))
    return path


def record_file(folder: Path, chance: random.Random) -> Path:
    """TensorBoard's records with lengths that promise more than there is, or of which the checksums do not fit."""
    data = bytearray()
    for n in range(chance.choice([1, 30, 2000])):
        body = b"\x09" + struct.pack("<d", 1e9 + n) + b"\x10" + bytes([n % 128]) + chance.randbytes(chance.randrange(40))
        length = chance.choice([len(body), len(body), len(body), 2**63, 0, 1 << 26])
        data += struct.pack("<QI", length, _checksum(struct.pack("<Q", length), chance)) + body
        data += struct.pack("<I", _checksum(body, chance))
    return put(folder / "events.out.tfevents.1700000000.host", bytes(data))


def _checksum(data: bytes, chance: random.Random) -> int:
    try:
        from google_crc32c import value
    except ImportError:
        return 0
    crc = value(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF if chance.random() < 0.9 else 7


def archive(folder: Path, chance: random.Random) -> Path:
    """Archives that unfold to gigabytes, hold themselves, thousands of files, or names that lead out of the folder."""
    kind = chance.choice(["large", "names", "many", "nested", "tar", "tar"])
    if kind == "tar":
        return _tar(folder / "a.tar.gz", chance)
    path = folder / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        if kind == "large":
            block = b"\n" * (1 << 20)
            with made.open("log.jsonl", "w", force_zip64=True) as file:
                for _ in range(chance.choice([16, 256, 1100])):
                    file.write(block)
        elif kind == "names":
            for name in ("../../out.jsonl", "/abs.jsonl", "a\\..\\..\\b.jsonl", "C:evil.jsonl", "ok/log.jsonl"):
                made.writestr(name, in_some_format(chance))
        elif kind == "many":
            for n in range(2000):
                made.writestr(f"{n}/log.jsonl", b"{}")
        else:
            made.writestr("inner.zip", path.read_bytes() + b"PK\x03\x04" * 100)
            made.writestr("log.jsonl", in_some_format(chance))
    return path


def _tar(path: Path, chance: random.Random) -> Path:
    with tarfile.open(path, "w:gz") as made:
        for name, kind, target in (
            ("log.jsonl", tarfile.REGTYPE, ""), ("dev.jsonl", tarfile.CHRTYPE, ""), ("pipe.jsonl", tarfile.FIFOTYPE, ""),
            ("link.jsonl", tarfile.SYMTYPE, "/etc/passwd"), ("loop", tarfile.SYMTYPE, "."), ("hard", tarfile.LNKTYPE, "../x"),
            (chance.choice(["../up.jsonl", "/abs.jsonl", "a/b.jsonl"]), tarfile.REGTYPE, ""),
        ):  # fmt: skip
            entry = tarfile.TarInfo(name)
            content = in_some_format(chance) if kind == tarfile.REGTYPE else b""
            entry.type, entry.linkname, entry.size = kind, target, len(content)
            made.addfile(entry, io.BytesIO(content))
    return path


def notebook(folder: Path, chance: random.Random) -> Path:
    text = chance.choice(["{'loss': 0.5}\n", "\x1b[31m", "x" * 1000, "\r 10%|#| loss=1"]) * chance.choice([10, 10_000, 200_000])
    kind = chance.choice(["stream", "display_data", "error", "nonsense"])
    output = {"output_type": kind, "text": text, "data": {"text/html": text}}
    outputs = chance.choice([[output] * 3, output, None])
    cell = {"cell_type": "code", "source": chance.choice([text, [text], 5, None]), "outputs": outputs}
    return put(folder / "n.ipynb", json.dumps({"cells": [cell] * chance.choice([1, 3]), "nbformat": 4}).encode()[: 60 << 20])


def settings_beside(folder: Path, chance: random.Random) -> Path:
    """A log that is sound, with settings beside it that are not."""
    laughs = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    texts = [laughs, "a: " * 20_000, "{" * 50_000, "x: !!python/object/apply:os.system ['id']", "\0", "a: &a [*a]"]
    texts.append("k: " + "9" * 100_000)
    names = ["config.yaml", "args.yaml", "config.json", "training_args.json"]
    put(folder / chance.choice(names), chance.choice(texts).encode())
    return put(folder / "log.jsonl", "\n".join(map(json.dumps, rows(chance, 30))).encode())


STORES = (parquet, mutated_parquet, database, record_file, archive, notebook, settings_beside)
