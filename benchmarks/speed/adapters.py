"""Each format: how many rows per second, and how much memory for each byte of the file.

The time is the processor's: what else the machine does is not ours. The memory is what reading takes beyond Python,
pandas and the library of the format, which are there before.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from report import Row, Sizes, child
from speed.logs import FORMATS
from speed.stores import STORES

SCRIPT = """
import importlib, json, sys, time
from rldk.ingest.choose import ADAPTERS
from rldk.ingest import read_runs
import pandas
for name in sys.argv[2:]:
    importlib.import_module(name)

def peak():  # not getrusage: it begins with what the parent had
    with open("/proc/self/status") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

before, begun = peak(), time.process_time()
result = read_runs(sys.argv[1])
frame = result.frame()
taken = time.process_time() - begun
assert result.files[0].problems.total == 0 and len(result.runs) == 1, result.files[0].problems.summary()
print(json.dumps([result.files[0].adapter, len(frame), taken, peak() - before]))
"""


def measure(folder: Path, sizes: Sizes) -> Iterator[Row]:
    for name, (least, write) in islice(FORMATS.items(), sizes.formats):
        yield from _measure(folder, sizes, name, least, write)
    for name, (least, write, library) in islice(STORES.items(), sizes.formats):
        yield from _measure(folder, sizes, name, least, write, library)


def _measure(
    folder: Path, sizes: Sizes, name: str, least: int, write: Callable[[Path, int], None], *libraries: str
) -> Iterator[Row]:
    path = folder / re.sub(r"\W", "_", name)
    write(path, sizes.rows)
    size = sum(file.stat().st_size for file in path.rglob("*")) if path.is_dir() else path.stat().st_size
    adapter, rows, taken, used = child(SCRIPT, path, *libraries)
    if rows < 0.9 * sizes.rows:
        raise RuntimeError(f"{name}: {rows} of {sizes.rows} rows were read")
    rate, share = rows / taken, used / size
    yield Row(f"{name} ({adapter})", f"{rate:,.0f} rows/s", f"at least {least:,}", rate >= least)
    yield Row("    memory", f"{used / 2**20:.0f} MiB: {share:.1f} x the file", "at most 6 x", share <= 6)
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
