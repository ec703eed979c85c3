"""Hostile stores: parquet, TensorBoard, W&B and databases that want more time or memory than any log needs."""

from __future__ import annotations

import gzip
import sqlite3
import struct
import zlib
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from hostile.texts import GIB, Maker, written

__all__ = ["STORES"]


def _parquet(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path, compression="zstd", **options)
    return path


def _same(value: Any, rows: int) -> Any:
    import pyarrow as pa

    return pa.repeat(pa.scalar(value), rows)


def long_parquet(folder: Path, share: float) -> Path:
    rows = int(20_000_000 * share)
    return _parquet(folder / "m.parquet", {"step": _same(1, rows)} | {f"c{n}": _same(0.5, rows) for n in range(10)})


def parquet_with_words(folder: Path, share: float) -> Path:
    rows = int(20_000_000 * share)
    return _parquet(folder / "m.parquet", {"step": _same(1, rows), "loss": _same(0.5, rows), "run_id": _same("a", rows)})


def parquet_with_long_words(folder: Path, share: float) -> Path:
    """A few megabytes that are terabytes when they are decoded."""
    rows, word = int(1_000_000 * share), "x" * 4_000_000
    columns = {"step": _same(1, rows), "loss": _same(0.5, rows)}
    return _parquet(folder / "m.parquet", columns | {name: _dictionary(word, rows) for name in ("notes", "phase")})


def _dictionary(word: str, rows: int) -> Any:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), pa.array([word]))


def wide_parquet(folder: Path, share: float) -> Path:
    count = int(20_000 * share)
    columns = {f"c{n}": _same(1.5, 100) for n in range(count)}
    return _parquet(folder / "m.parquet", {"step": _same(1, 100), "loss": _same(0.5, 100), **columns})


def parquet_with_gaps(folder: Path, share: float) -> Path:
    import numpy as np
    import pyarrow as pa

    rows, chance = int(2_000_000 * share), np.random.default_rng(0)
    columns = {f"c{n}": pa.array(np.ones(rows), mask=chance.random(rows) < 0.5) for n in range(15)}
    return _parquet(folder / "m.parquet", {"step": np.arange(rows), **columns})


def feather(folder: Path, share: float) -> Path:
    import pyarrow as pa
    import pyarrow.feather

    pyarrow.feather.write_feather(pa.table({"step": _same(1, int(20_000_000 * share))}), folder / "m.feather", compression="zstd")
    return folder / "m.feather"


def _event_file(path: Path, events: Iterable[bytes], repeat: int = 1) -> Path:
    from rldk.ingest.formats.tensorboard import masked_checksum

    first = _event(b"\x1a\x0dbrain.Event:2")
    with gzip.open(path, "wb", 1) if path.suffix == ".gz" else path.open("wb") as file:
        for number, event in enumerate((first, *events)):
            head = struct.pack("<Q", len(event))
            record = head + struct.pack("<I", masked_checksum(head)) + event + struct.pack("<I", masked_checksum(event))
            for _ in range(repeat if number else 1):
                file.write(record)
    return path


def _event(rest: bytes, step: int = 0) -> bytes:
    return b"\x09" + struct.pack("<d", 1.7e9) + (b"\x10" + _varint(step) if step else b"") + rest


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _value(tag: bytes, value: float = 0.5) -> bytes:
    return _field(1, _field(1, tag) + b"\x15" + struct.pack("<f", value))


def event_of_many_values(folder: Path, share: float) -> Path:
    values = b"".join(_value(b"k%d" % n) for n in range(int(3_000_000 * share)))
    return _event_file(folder / "events.out.tfevents.1", [_event(_field(5, values), 1)])


def new_tag_in_each_event(folder: Path, share: float) -> Path:
    events = (_event(_field(5, _value(b"loss") + _value(b"key%d" % n)), n) for n in range(1, int(200_000 * share)))
    return _event_file(folder / "events.out.tfevents.1", events)


def packed_events(folder: Path, share: float) -> Path:
    event = _event(_field(5, _value(b"loss") + _value(b"reward")), 1)
    return _event_file(folder / "events.out.tfevents.1.gz", [event], int(GIB * share / 4 / (len(event) + 16)))


def large_events(folder: Path, share: float) -> Path:
    """Events of 50 MB, such as no scalar needs."""
    event = _event(_field(5, _field(1, _field(1, b"a") + _field(8, b"\0" * 50_000_000))), 1)
    return _event_file(folder / "events.out.tfevents.1.gz", [event], max(1, int(20 * share)))


def _wandb(path: Path, records: Iterable[bytes]) -> Path:
    block, seeds = 32 << 10, {kind: zlib.crc32(bytes([kind])) for kind in (1, 2, 3, 4)}
    out = bytearray(b":W&B\xe1\xbe\x00")
    with path.open("wb") as file:
        place = len(out)
        for record in records:
            first, rest = True, memoryview(record)
            while first or rest:
                room = block - place % block
                if room < 7:
                    out += b"\0" * room
                    place += room
                    continue
                part, rest = rest[: room - 7], rest[room - 7 :]
                kind = (1 if first else 4) if not rest else (2 if first else 3)
                out += struct.pack("<IHB", zlib.crc32(part, seeds[kind]), len(part), kind) + part
                place += 7 + len(part)
                first = False
            if len(out) > 1 << 20:
                file.write(out)
                out.clear()
        file.write(out)
    return path


def _history(items: dict[str, str], step: int) -> bytes:
    from wandb.proto import wandb_internal_pb2 as proto

    record = proto.Record()
    record.history.step.num = step
    for key, value in items.items():
        record.history.item.add(key=key, value_json=value)
    return bytes(record.SerializeToString())


def wandb_row_of_many_keys(folder: Path, share: float) -> Path:
    items = {f"k{n}": "1" for n in range(int(2_000_000 * share))}
    return _wandb(folder / "run-a.wandb", (_history({"loss": "0.5", **items}, step) for step in (1, 2)))


def new_key_in_each_wandb_row(folder: Path, share: float) -> Path:
    rows = range(int(200_000 * share))
    return _wandb(folder / "run-a.wandb", (_history({"loss": "0.5", f"key{n}": "1"}, n) for n in rows))


def wandb_settings_again_and_again(folder: Path, share: float) -> Path:
    from wandb.proto import wandb_internal_pb2 as proto

    def records() -> Iterable[bytes]:
        for n in range(int(50_000 * share)):
            record = proto.Record()
            record.run.run_id = "a"
            record.run.config.update.add(key=f"key{n}", value_json='"x"')
            yield bytes(record.SerializeToString())
        for n in range(20):
            yield _history({"loss": "0.5"}, n)

    return _wandb(folder / "run-a.wandb", records())


_RUNS = "CREATE TABLE runs (run_uuid TEXT, name TEXT, lifecycle_stage TEXT, start_time INTEGER)"
_METRICS = "CREATE TABLE metrics (key TEXT, value REAL, timestamp INTEGER, run_uuid TEXT, step INTEGER, is_nan INTEGER)"


def _mlflow(path: Path, runs: Iterable[tuple[Any, ...]], points: Iterable[tuple[Any, ...]], metrics: str = _METRICS) -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA synchronous = OFF")
        database.execute(_RUNS)
        database.execute(metrics)
        database.executemany("INSERT INTO runs VALUES (?, ?, 'active', 0)", runs)
        database.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, 0)", points)
        database.commit()
    return path


def many_points(folder: Path, share: float) -> Path:
    points = (("loss" if n % 2 else "reward", 0.5, n, "a", n // 2) for n in range(int(3_000_000 * share)))
    return _mlflow(folder / "mlflow.db", [("a", "a")], points)


def new_key_in_each_point(folder: Path, share: float) -> Path:
    points = ((f"key{n}", 0.5, 1, "a", 1) for n in range(int(1_000_000 * share)))
    return _mlflow(folder / "mlflow.db", [("a", "a")], [("loss", 0.5, 0, "a", 0), *points])


def many_runs_of_one_name(folder: Path, share: float) -> Path:
    count = int(50_000 * share)
    points = (("loss", 0.5, n, str(n % count), n // count) for n in range(2 * count))
    return _mlflow(folder / "mlflow.db", ((str(n), "same") for n in range(count)), points)


def long_key(folder: Path, share: float) -> Path:
    key = "k" * int(400_000_000 * share)
    return _mlflow(folder / "mlflow.db", [("a", "a")], [("loss", 0.5, 0, "a", 0), (key, 0.5, 1, "a", 1)])


def computed_column(folder: Path, share: float) -> Path:
    """A column that the database makes up when it is read, of a gigabyte in each row."""
    made = _METRICS.replace("key TEXT", f"at INTEGER, key TEXT AS (hex(zeroblob({int(450_000_000 * share)} + at)))")
    with closing(sqlite3.connect(folder / "mlflow.db")) as database:
        database.execute(_RUNS)
        database.execute(made)
        database.execute("INSERT INTO runs VALUES ('a', 'a', 'active', 0)")
        insert = "INSERT INTO metrics (at, value, timestamp, run_uuid, step, is_nan) VALUES (?, 0.5, 0, 'a', ?, 0)"
        database.executemany(insert, ((n, n) for n in range(50)))
        database.commit()
    return folder / "mlflow.db"


def trackio_rows(folder: Path, share: float) -> Path:
    with closing(sqlite3.connect(folder / "trackio.db")) as database:
        database.execute("CREATE TABLE metrics (timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT)")
        rows = (("2024-01-01", "a", n, f'{{"loss": 0.5, "key{n}": 1}}') for n in range(int(200_000 * share)))
        database.executemany("INSERT INTO metrics (timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?)", rows)
        database.commit()
    return folder / "trackio.db"


def many_metric_files(folder: Path, share: float) -> Path:
    run = folder / "mlruns" / "0" / "abc"
    (run / "metrics").mkdir(parents=True)
    written(folder / "mlruns" / "0" / "meta.yaml", "experiment_id: 0\n")
    written(run / "meta.yaml", "run_id: abc\nstart_time: 1\n")
    for n in range(int(20_000 * share)):
        written(run / "metrics" / f"key{n}", "1 0.5 1\n")
    written(run / "metrics" / "loss", "1 0.5 1\n" * int(1_000_000 * share))
    return folder / "mlruns"


STORES: list[Maker] = [
    long_parquet, parquet_with_words, parquet_with_long_words, wide_parquet, parquet_with_gaps, feather, event_of_many_values,
    new_tag_in_each_event, packed_events, large_events, wandb_row_of_many_keys, new_key_in_each_wandb_row,
    wandb_settings_again_and_again, many_points, new_key_in_each_point, many_runs_of_one_name, long_key, computed_column,
    trackio_rows, many_metric_files,
]  # fmt: skip
