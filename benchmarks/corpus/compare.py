"""Whether two recordings of a run are the same, except for times, resources and paths."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from corpus.store import EVENTS, OUTCOME, PLAIN, read_json, read_text

__all__ = ["differences"]

VARIES = frozenset(
    ["time", "eps", "second", "runtime", "mfu", "memory", "cpu", "gpu", "path", "folder", "eta", "git", "throughput", "disk"]
)
"""Words in the names of what may differ between two recordings: times, resources and paths."""


def differences(one: Path, other: Path) -> list[str]:
    """Where two recordings differ, by file and key."""
    found: list[str] = []
    lines = [[json.loads(line) for line in read_text(folder / EVENTS).splitlines()] for folder in (one, other)]
    for name, (left, right) in {
        EVENTS: lines,
        PLAIN: [read_json(folder / PLAIN) for folder in (one, other)],
        OUTCOME: [read_json(folder / OUTCOME) for folder in (one, other)],
    }.items():
        found += [f"{name}{where}" for where in _unequal(left, right)]
    return found


def _unequal(left: Any, right: Any, where: str = "") -> list[str]:
    if isinstance(left, dict) and isinstance(right, dict):
        names = [name for name in sorted({*left, *right}) if VARIES.isdisjoint(re.split(r"[^a-z]+", name.lower()))]
        return [place for name in names for place in _unequal(left.get(name), right.get(name), f"{where}.{name}")]
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return [place for number in range(len(left)) for place in _unequal(left[number], right[number], f"{where}[{number}]")]
    both_nan = left != left and right != right
    return [] if left == right or both_nan else [where]
