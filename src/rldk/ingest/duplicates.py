"""Runs that are found twice: checkpoints that each hold the log so far, and runs of one name in different folders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from rldk.runs.run import Run

__all__ = ["begins", "distinct_names", "drop_prefixes", "name_apart"]


def drop_prefixes(runs: list[Run]) -> tuple[list[Run], list[tuple[Path, str]]]:
    """Leave out each run that is the beginning of a longer one from another file, and say so."""
    kept: list[Run] = []
    by_mark: dict[int, list[Run]] = {}
    dropped: list[tuple[Path, str]] = []
    in_file = Counter(run.path for run in runs)
    for run in sorted(runs, key=len, reverse=True):
        marks = run.beginning_marks()
        alike = min((by_mark.get(mark, []) for mark in marks), key=len, default=[])
        longer = next((other for other in alike if other.path != run.path and begins(other.whole(), run.whole())), None)
        if longer is None:
            kept.append(run)
            for mark in marks:
                by_mark.setdefault(mark, []).append(run)
        else:
            dropped.append((run.path, _why_dropped(run, longer, in_file)))
    order = {id(run): position for position, run in enumerate(runs)}
    return sorted(kept, key=lambda run: order[id(run)]), dropped


def _why_dropped(run: Run, longer: Run, in_file: Mapping[Path, int]) -> str:
    """`its run b#2 is a copy of a.jsonl`; runs are named where their file holds several."""
    own = f"its run {run.run_id}" if in_file[run.path] > 1 else "it"
    other = f"{longer.run_id} of {longer.path}" if in_file[longer.path] > 1 else str(longer.path)
    if len(run) == len(longer):
        return f"{own} is a copy of {other}"
    steps = f"the {len(run)} steps of {own}" if in_file[run.path] > 1 else f"its {len(run)} steps"
    return f"{steps} are the beginning of {other}, which has {len(longer)}"


def begins(longer: Run, run: Run) -> bool:
    """Whether a run is the beginning of a longer one."""
    size = len(run)
    if size < 2 or size > len(longer) or not np.array_equal(longer.steps[:size], run.steps):
        return False
    shared = [name for name in run.columns if name in longer.columns]
    return len(shared) == len(run.columns) and all(
        np.array_equal(longer.columns[name].values[:size], run.columns[name].values, equal_nan=True) for name in shared
    )


class Named(Protocol):
    """What has a name and a place."""

    run_id: str
    path: Path


def name_apart(runs: Sequence[Named]) -> None:
    """Give each run a name that no other has: by its folders where runs of different files share one."""
    for run, name in zip(runs, distinct_names(runs), strict=True):
        run.run_id = name


def distinct_names(runs: Sequence[Named]) -> list[str]:
    """A name for each run that no other has: its own, or one by its folders where runs of different files share it."""
    names = [run.run_id for run in runs]
    by_name: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        by_name.setdefault(name, []).append(number)
    taken = set(by_name)
    for name, same in by_name.items():
        if len(same) < 2:
            continue
        choices = [_names_by_folder(runs[number], name) for number in same]
        shared = Counter(choice for run in choices for choice in run)
        for number, possible in zip(same, choices, strict=True):
            found = next((choice for choice in possible if choice not in taken and shared[choice] == 1), name)
            count = 2
            while found in taken:
                found, count = f"{name}~{count}", count + 1
            names[number] = found
            taken.add(found)
    return names


def _names_by_folder(run: Named, name: str) -> list[str]:
    """The names that a run may have, with more and more of the folders it is in: `b/run`, `a/b/run`."""
    parts = [part for part in run.path.absolute().parts[1:-1] if part != name]
    return [f"{'/'.join(parts[-depth:])}/{name}" for depth in range(1, len(parts) + 1)]
