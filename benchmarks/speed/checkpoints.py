"""Comparing two checkpoints of 100 M parameters, beside reading both files and doing no more with them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from report import Row, Sizes, median
from rldk.checkpoints import compare_checkpoints
from rldk.testing.checkpoints import write_safetensors

BAR = 2.0
MATRIX = (1000, 1000)


def write(path: Path, matrices: int, seed: int, kind: str) -> Path:
    """A model of square matrices, a little further trained for each seed."""
    draw = np.random.default_rng(0)
    step = np.random.default_rng(seed)
    weights = {}
    for n in range(matrices):
        values = 0.02 * draw.standard_normal(MATRIX, dtype=np.float32)
        values += np.float32(1e-4 * seed) * step.standard_normal(MATRIX, dtype=np.float32)
        weights[f"model.layers.{n}.weight"] = values.astype(np.float16) if kind == "F16" else values
    return write_safetensors(path, weights, bfloat16=kind == "BF16")


def stream(path: Path) -> None:
    """Read a file to its end through one small buffer: the least that anyone who looks at every byte must do."""
    buffer = memoryview(bytearray(1 << 20))
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def both(do: Callable[[Path], object]) -> Callable[[Path, Path], object]:
    return lambda first, second: (do(first), do(second))


def timed(work: Callable[[Path, Path], object], first: Path, second: Path) -> float:
    began = time.perf_counter()
    work(first, second)
    return time.perf_counter() - began


def measure(folder: Path, sizes: Sizes) -> Iterator[Row]:
    """Reading and comparing in turns, so that what else the machine does meets both alike; files are in the page cache."""
    matrices = sizes.matrices
    for kind in ("F32", "BF16", "F16"):
        first, second = (write(folder / f"{kind}-{seed}.safetensors", matrices, seed, kind) for seed in (0, 1))
        work = {"stream": both(stream), "read": both(Path.read_bytes), "compare": compare_checkpoints}
        taken: dict[str, list[float]] = {key: [] for key in work}
        for _ in range(sizes.repetitions):
            for key, do in work.items():
                taken[key].append(timed(do, first, second))
        through, read, compare = (median(taken[key]) for key in work)
        yield Row(f"{kind}, {matrices} M parameters: read both into memory", f"{read:.2f} s")
        yield Row(f"{kind}: read both through one buffer", f"{through:.2f} s")
        ratio = compare / read
        measured = f"{compare:.2f} s, {ratio:.2f} × reading into memory"
        yield Row(f"{kind}: compare_checkpoints", measured, f"at most {BAR:.0f} × reading", ratio <= BAR)
        first.unlink(), second.unlink()
