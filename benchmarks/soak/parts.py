"""What the parts of the soak share: their arguments, their account, and looking for what is left over."""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import psutil

__all__ = ["Account", "leftovers", "memory", "private_folder"]

MAX_TOLD = 30
SETTLED_AFTER = 600.0


class Account:
    """What a part counts and finds broken. `tell` prints it as one line; the last line counts.

    `going` says whether there is time left. `grown` is called now and then with the name of a memory: its growth since the
    first ten minutes is known in a part that lasts longer.
    """

    def __init__(self) -> None:
        self.seconds, self.seed = float(sys.argv[1]), int(sys.argv[2])
        self.rest = sys.argv[3:]
        self.output: TextIO = sys.stdout
        self.counts: Counter[str] = Counter()
        self.maxima: dict[str, float] = {}
        self.broken: list[str] = []
        self._began = time.monotonic()
        self._early: dict[str, int] = {}

    @property
    def going(self) -> bool:
        return time.monotonic() - self._began < self.seconds

    def count(self, **found: int) -> None:
        self.counts.update(found)

    def break_(self, count: str, what: str, times: int = 1) -> None:
        """A promise was broken."""
        self.counts[count] += times
        self.broken.append(f"seed {self.seed}: {what}")

    def most(self, name: str, value: float) -> None:
        self.maxima[name] = max(self.maxima.get(name, 0), value)

    def grown(self, name: str) -> None:
        if time.monotonic() - self._began > SETTLED_AFTER:
            now = memory()
            self.most(f"max_{name}_growth", round(now / self._early.setdefault(name, now) - 1.0, 4))

    def tell(self) -> None:
        told = {**self.counts, **self.maxima, "broken": self.broken[:MAX_TOLD]}
        print(json.dumps(told), file=self.output, flush=True)


def memory() -> int:
    """The resident memory of this process."""
    gc.collect()
    return int(psutil.Process().memory_info().rss)


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder for this part; what it and its children put into the folder for temporary files lies in its `tmp`."""
    with tempfile.TemporaryDirectory(prefix="rldk-soak-") as made:
        temporary = Path(made) / "tmp"
        temporary.mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(temporary)
        try:
            yield Path(made)
        finally:
            tempfile.tempdir = None
            del os.environ["TMPDIR"]


def leftovers(*folders: Path, seconds: float = 15.0) -> list[str]:
    """Threads and processes of rldk that have not ended after so long, and half-written files in these folders."""
    deadline = time.monotonic() + seconds
    while (left := _running()) and time.monotonic() < deadline:
        time.sleep(0.05)
    parts = (path for folder in folders for path in folder.rglob("*") if path.suffix == ".part")
    return left + [f"file {path.name}" for path in parts]


def _running() -> list[str]:
    threads = [f"thread {one.name}" for one in threading.enumerate() if one.name.startswith("rldk")]
    return threads + [f"process {_name(one)}" for one in psutil.Process().children(recursive=True)]


def _name(process: Any) -> str:
    try:
        return str(process.name())
    except psutil.Error:
        return str(process.pid)
