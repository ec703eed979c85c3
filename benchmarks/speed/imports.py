"""How long it takes to start: `import rldk` and `rldk --help`, beside a Python that does nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from report import Row, Sizes, median

COMMANDS = {
    "python -c pass": (["-c", "pass"], 0),
    "import rldk": (["-c", "import rldk"], 60),
    "rldk --help": (["-m", "rldk", "--help"], 300),
}


def measure(folder: Path, sizes: Sizes) -> Iterator[Row]:
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(sizes.starts):
        for name, (arguments, _) in COMMANDS.items():
            begun = time.perf_counter()
            subprocess.run([sys.executable, *arguments], cwd=folder, stdout=subprocess.DEVNULL, check=True)
            taken[name].append(1000 * (time.perf_counter() - begun))
    for name, (_, bar) in COMMANDS.items():
        middle, best = median(taken[name]), min(taken[name])
        measured = f"median {middle:.0f} ms, best {best:.0f} ms"
        yield Row(name, measured, f"at most {bar} ms", middle <= bar) if bar else Row(name, measured)
