"""What a benchmark says: a name, what was measured, the bar, and whether it holds."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Report", "Row", "Sizes", "child", "median"]


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    events: int = 200_000
    repetitions: int = 5
    writes: int = 20_000
    starts: int = 10
    rows: int = 100_000
    formats: int | None = None
    matrices: int = 100

    @classmethod
    def quick(cls) -> Sizes:
        return cls(events=300, repetitions=1, writes=200, starts=1, rows=300, formats=2, matrices=1)


@dataclass(frozen=True)
class Row:
    """One line: `holds` is `None` where there is no bar."""

    name: str
    measured: str
    bar: str = ""
    holds: bool | None = None


@dataclass
class Report:
    """Prints lines as they come, and at the end how many bars hold; what was too small is not judged."""

    judging: bool = True
    rows: list[Row] = field(default_factory=list)

    def begin(self, title: str) -> None:
        if not self.rows:
            print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        print(f"\n{title}")

    def add(self, row: Row) -> None:
        self.rows.append(row)
        verdict = {None: "", True: "ok", False: "MISS"}[row.holds] if self.judging else ""
        print(f"  {row.name:52} {row.measured:>34}   {row.bar:22} {verdict}".rstrip(), flush=True)

    def finish(self) -> None:
        judged = [row.holds for row in self.rows if row.holds is not None]
        print(f"\n{sum(judged)} of {len(judged)} bars hold" if self.judging else "\ntoo small to judge")


def median(values: list[float]) -> float:
    return statistics.median(values)


def child(script: str, *arguments: str | Path | int) -> Any:
    """Run a script in a process of its own; it prints one JSON value, which is given back."""
    done = subprocess.run(
        [sys.executable,
        "-c", script, *map(str, arguments)], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"a benchmark failed:\n{done.stderr}")
    return json.loads(done.stdout)
