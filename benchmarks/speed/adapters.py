"""Each text format: how many rows a second, and how much memory for each byte of the file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from report import Row, Sizes, child
from speed.logs import FORMATS

SCRIPT = """
import json, sys, time
from rldk.adapters.table import ADAPTERS
from rldk.ingest import read_runs
import pandas

def peak():  # not getrusage: it begins with what the parent had
    with open("/proc/self/status") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

before, begun = peak(), time.perf_counter()
result = read_runs(sys.argv[1])
frame = result.frame()
taken = time.perf_counter() - begun
assert result.files[0].problems.total == 0 and len(result.runs) == 1, result.files[0].problems.summary()
print(json.dumps([result.files[0].adapter, len(frame), taken, peak() - before]))
"""


def measure(folder: Path, sizes: Sizes) -> Iterator[Row]:
    for name, (least, write) in islice(FORMATS.items(), sizes.formats):
        path = folder / name.replace(" ", "_").replace("/", "_")
        write(path, sizes.rows)
        size = path.stat().st_size
        adapter, rows, taken, used = child(SCRIPT, path)
        if rows < 0.9 * sizes.rows:
            raise RuntimeError(f"{name}: {rows} of {sizes.rows} rows were read")
        rate, share = rows / taken, used / size
        yield Row(f"{name} ({adapter})", f"{rate:,.0f} rows/s", f"at least {least:,}", rate >= least)
        yield Row("    memory", f"{used / 2**20:.0f} MiB: {share:.1f} x the file", "at most 6 x", share <= 6)
        path.unlink()
