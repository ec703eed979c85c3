"""`ingest_runs` against pandas and DuckDB on the same file of events, in turn, each time in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from report import Row, Sizes, child, median
from speed.logs import write_events

RLDK = """
import json, sys, time
from rldk.ingest import ingest_runs
import pandas
begun = time.perf_counter()
frame = ingest_runs(sys.argv[1])
taken = time.perf_counter() - begun
assert len(frame) == int(sys.argv[2]) and "reward_mean" in frame
print(json.dumps(taken))
"""
PANDAS = """
import json, sys, time
import pandas
begun = time.perf_counter()
frame = pandas.read_json(sys.argv[1], lines=True)
taken = time.perf_counter() - begun
assert len(frame) == int(sys.argv[2])
print(json.dumps(taken))
"""
DUCKDB = """
import json, sys, time
import duckdb, pandas
columns = "*" if sys.argv[3] == "plain" else "* exclude (metrics), unnest(metrics)"
begun = time.perf_counter()
frame = duckdb.sql(f"select {columns} from read_ndjson('{sys.argv[1]}')").df()
taken = time.perf_counter() - begun
assert len(frame) == int(sys.argv[2])
print(json.dumps(taken))
"""


def measure(folder: Path, sizes: Sizes) -> Iterator[Row]:
    path = folder / "events.jsonl"
    write_events(path, sizes.events)
    taken: dict[str, list[float]] = {"rldk": [], "pandas": [], "duckdb": [], "flat": []}
    for _ in range(sizes.repetitions):
        taken["rldk"].append(child(RLDK, path, sizes.events))
        taken["duckdb"].append(child(DUCKDB, path, sizes.events, "plain"))
        taken["flat"].append(child(DUCKDB, path, sizes.events, "flat"))
        taken["pandas"].append(child(PANDAS, path, sizes.events))
    ours = median(taken["rldk"])
    rate = sizes.events / ours
    yield Row("ingest_runs", f"{ours:.2f} s, {rate:,.0f} events/s")
    for name, title, bar in (
        ("pandas", "pandas.read_json(lines=True)", 5.0),
        ("duckdb", "DuckDB read_ndjson, metrics as one struct", 1.0),
        ("flat", "DuckDB read_ndjson, metrics flattened", 1.0),
    ):
        theirs = median(taken[name])
        yield Row(
            f"against {title}", f"{theirs:.2f} s: {theirs / ours:.2f} x as fast", f"at least {bar:g} x", theirs / ours >= bar
        )
