"""Rows in a JSON document whose author chose the names: under any key, one list per run, one object per step or per metric."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from rldk.core.catalog import is_measured
from rldk.core.catalog.axes import HELD_OUT, RUN_KEYS, STEP_KEYS, has_step, is_axis
from rldk.core.catalog.guess import guess
from rldk.core.catalog.metric import normalise
from rldk.core.jsonio import to_number

__all__ = ["rows_anywhere"]

_MAX_DEPTH = 5
_LOOKED_AT = 5
_STEP = re.compile(
    r"(?:(?:global[ _-]?)?(?:step|iter|iteration|update|round|epoch|batch|checkpoint|ckpt)[ _:-]*)?(\d+)", re.IGNORECASE
)
_NOT_ROWS = frozenset({
    "config", "configuration", "args", "arguments", "params", "hparams", "settings", "samples", "sample", "examples",
    "completions", "generations", "prompts", "responses", "messages", "conversations", "transcripts", "trajectories",
    "episodes",
})  # fmt: skip
_TEXTS = frozenset({"prompt", "completion", "response", "question", "answer", "text", "messages"})
_NAMES = ("name", "id", "label", "seed", *RUN_KEYS)

Path = tuple[str, ...]
Rows = list[Mapping[str, Any]]


def rows_anywhere(document: Any) -> Rows | None:
    """The rows of a document, with the run or the phase that their place says; `None` where there are none."""
    found = list(_search(document, (), 0))
    if not found:
        return None
    train = [(path, rows) for path, rows in found if not _is_held_out(path)]
    if not train:
        return None
    names = _names([path for path, _ in train])
    labelled: Rows = []
    for name, (_, rows) in zip(names, train, strict=True):
        labelled += rows if len(train) == 1 else [row if "run" in row else {**row, "run": name} for row in rows]
    if len(train) == 1:
        labelled += [{**row, "phase": "eval"} for path, rows in found if _is_held_out(path) for row in rows if has_step(row)]
    return labelled


def _search(document: Any, path: Path, depth: int) -> Iterator[tuple[Path, Rows]]:
    if depth > _MAX_DEPTH or (path and normalise(path[-1]) in _NOT_ROWS):
        return
    rows = _rows(document)
    if rows:
        yield path, rows
    elif isinstance(document, dict) and (tables := _tables(document)):
        yield from (((*path, name), rows) for name, rows in tables.items())
    elif isinstance(document, dict):
        for key, value in document.items():
            if isinstance(value, (dict, list)):
                yield from _search(value, (*path, str(key)), depth + 1)
    elif isinstance(document, list) and len(document) > 1 and all(isinstance(part, dict) for part in document):
        yield from _parts(document, path, depth)


def _parts(parts: list[dict[str, Any]], path: Path, depth: int) -> Iterator[tuple[Path, Rows]]:
    """Rows in a list of objects that each hold some: runs where each has a name of its own, else parts of one run."""
    named = [next((str(part[key]) for key in _NAMES if isinstance(part.get(key), (str, int))), "") for part in parts]
    if all(named) and len(set(named)) == len(named):
        for name, part in zip(named, parts, strict=True):
            yield from _search(part, (*path, name), depth + 1)
        return
    found = [row for part in parts for inner, rows in _search(part, path, depth + 1) if not _is_held_out(inner) for row in rows]
    if found:
        yield path, found


def _tables(document: Mapping[str, Any]) -> dict[str, Rows]:
    """The runs of `{"ppo": {"reward": […], "kl": […]}, "grpo": {…}}`, whose lists have the same names; not phases of one run."""
    found = {str(name): _lists(part) for name, part in document.items() if isinstance(part, dict)}
    tables = {name: lists for name, lists in found.items() if any(map(is_measured, lists))}
    phases = any(_is_held_out((name,)) or normalise(name).startswith("train") for name in tables)
    if len(tables) < 2 or phases or len({tuple(sorted(lists)) for lists in tables.values()}) != 1:
        return {}
    return {
        name: [dict(zip(lists, cells, strict=True)) for cells in zip(*lists.values(), strict=True)]
        for name, lists in tables.items()
        if len({len(cells) for cells in lists.values()}) == 1
    }


def _lists(part: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The lists of numbers in an object; those of steps under the name of one."""
    return {
        "step" if key == "steps" else str(key): cells
        for key, cells in part.items()
        if isinstance(cells, list) and len(cells) > 1 and all(cell is None or isinstance(cell, (int, float)) for cell in cells)
    }


def _rows(document: Any) -> Rows | None:
    """A list of objects, or an object with one object per step or per metric, of which the first measure something."""
    if isinstance(document, list):
        rows: Rows = [row for row in document if isinstance(row, dict)]
    elif isinstance(document, dict) and len(document) > 1 and all(isinstance(row, dict) for row in document.values()):
        steps = [_STEP.fullmatch(str(key).strip()) for key in document]
        if not any(steps):
            rows = _by_metric(document)
        elif all(steps):
            rows = [{"step": int(step[1]), **row} for step, row in zip(steps, document.values(), strict=True) if step]
        else:
            return None
    else:
        return None
    if len(rows) < 2 or (any(_TEXTS & set(row) for row in rows[:_LOOKED_AT]) and not _steps_grow(rows)):
        return None
    rows = _unwrapped(rows)
    keys = {str(key) for row in rows[:_LOOKED_AT] for key in row}
    return rows if any(is_measured(key) or guess(key) is not None for key in keys) else None


def _unwrapped(rows: Rows) -> Rows:
    """The rows without the object that all of them keep their metrics in: `{"iteration": 1, "stats": {"kl": 0.1}}`."""
    first = {str(key) for row in rows[:_LOOKED_AT] for key, value in row.items() if isinstance(value, dict)}
    others = {str(key) for row in rows[:_LOOKED_AT] for key in row} - first
    if len(first) != 1 or not all(map(is_axis, others)):
        return rows
    (inside,) = first
    return [{**row.get(inside, {}), **{key: row[key] for key in row if key != inside}} for row in rows]


def _by_metric(document: Mapping[str, Mapping[str, Any]]) -> Rows:
    """The rows of `{"loss": {"1": 0.5, "2": 0.4}, "kl": {…}}`, as NeMo-RL exports its metrics; else none."""
    rows: dict[int, dict[str, Any]] = {}
    for key, cells in document.items():
        steps = [_STEP.fullmatch(str(step).strip()) for step in cells]
        if len(steps) > 1 and all(steps) and all(isinstance(cell, (int, float)) or cell is None for cell in cells.values()):
            for step, cell in zip(steps, cells.values(), strict=True):
                if step is not None:
                    rows.setdefault(int(step[1]), {})[str(key)] = cell
    return [{"step": step, **rows[step]} for step in sorted(rows)]


def _steps_grow(rows: Rows) -> bool:
    """Whether each row is of a later step than the one before, so that they are not samples with a text."""
    steps = [next((to_number(row[key]) for key in STEP_KEYS if key in row), None) for row in rows]
    return all(before is not None and after is not None and after > before for before, after in pairwise(steps))


def _is_held_out(path: Path) -> bool:
    return bool(path) and not HELD_OUT.isdisjoint(normalise(path[-1]).split("_"))


def _names(paths: list[Path]) -> list[str]:
    """What the runs are called: the parts of their paths in which they differ."""
    differing = [
        tuple(part for position, part in enumerate(path) if len({other[position : position + 1] for other in paths}) > 1)
        for path in paths
    ]
    return ["/".join(parts) or "/".join(path) for parts, path in zip(differing, paths, strict=True)]
