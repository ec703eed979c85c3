"""Rows in a JSON document whose author chose the names: under any key, one list per run, or one object per step."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rldk.core.catalog import is_measured
from rldk.core.catalog.axes import HELD_OUT, STEP_KEYS
from rldk.core.catalog.guess import guess
from rldk.core.catalog.metric import normalise

__all__ = ["rows_anywhere"]

_MAX_DEPTH = 5
_LOOKED_AT = 5
_STEP = re.compile(r"(?:(?:global[ _-]?)?(?:step|iter|iteration|update|round|epoch|batch)[ _:-]*)?(\d+)", re.IGNORECASE)
_NOT_ROWS = frozenset({
    "config", "configuration", "args", "arguments", "params", "hparams", "settings", "samples", "sample", "examples",
    "completions", "generations", "prompts", "responses", "messages", "conversations", "transcripts", "trajectories",
    "episodes",
})  # fmt: skip
_TEXTS = frozenset({"prompt", "completion", "response", "question", "answer", "text", "messages"})

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
        labelled += [{**row, "phase": "eval"} for path, rows in found if _is_held_out(path) for row in rows if _has_step(row)]
    return labelled


def _search(document: Any, path: Path, depth: int) -> Iterator[tuple[Path, Rows]]:
    if depth > _MAX_DEPTH or (path and normalise(path[-1]) in _NOT_ROWS):
        return
    rows = _rows(document)
    if rows:
        yield path, rows
    elif isinstance(document, dict):
        for key, value in document.items():
            if isinstance(value, (dict, list)):
                yield from _search(value, (*path, str(key)), depth + 1)


def _rows(document: Any) -> Rows | None:
    """A list of objects, or an object with one object per step, of which the first measure something."""
    if isinstance(document, list):
        rows: Rows = [row for row in document if isinstance(row, dict)]
    elif isinstance(document, dict) and len(document) > 1 and all(isinstance(row, dict) for row in document.values()):
        steps = [_STEP.fullmatch(str(key).strip()) for key in document]
        if not all(steps):
            return None
        rows = [{"step": int(step[1]), **row} for step, row in zip(steps, document.values(), strict=True) if step]
    else:
        return None
    if len(rows) < 2 or any(_TEXTS & set(row) for row in rows[:_LOOKED_AT]):
        return None
    keys = {str(key) for row in rows[:_LOOKED_AT] for key in row}
    return rows if any(is_measured(key) or guess(key) is not None for key in keys) else None


def _has_step(row: Mapping[str, Any]) -> bool:
    return any(key in row for key in STEP_KEYS)


def _is_held_out(path: Path) -> bool:
    return bool(path) and not HELD_OUT.isdisjoint(normalise(path[-1]).split("_"))


def _names(paths: list[Path]) -> list[str]:
    """What the runs are called: the parts of their paths in which they differ."""
    differing = [
        tuple(part for position, part in enumerate(path) if len({other[position : position + 1] for other in paths}) > 1)
        for path in paths
    ]
    return ["/".join(parts) or "/".join(path) for parts, path in zip(differing, paths, strict=True)]
