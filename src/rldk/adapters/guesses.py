"""What was guessed of a log's keys, what could not be placed, and the field map that would place it."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Mapping
from functools import cache

from rldk.adapters.formats.known import is_measured
from rldk.core.catalog import CATALOG
from rldk.core.catalog.metric import normalise
from rldk.runs.run import Run

__all__ = ["explain", "placeable", "suggest"]

_MOST = 8


def placeable(keys: Iterable[str], field_map: Mapping[str, str]) -> list[str]:
    """The keys that make rows out of a table: what the catalogue knows to be measured, and what the user has mapped."""
    return [key for key in keys if key in field_map or is_measured(key)]


def suggest(key: str) -> str | None:
    """The metric whose name or alias looks most like a key's; `None` where none does."""
    names = _names()
    near = difflib.get_close_matches(normalise(key), names, n=1, cutoff=0.75)
    near = near or difflib.get_close_matches(normalise(key.rsplit("/", 1)[-1]), names, n=1, cutoff=0.8)
    return names[near[0]] if near else None


@cache
def _names() -> dict[str, str]:
    entries = [entry for entry in CATALOG.values() if not entry.name.endswith("/*")]
    return {normalise(name): entry.name for entry in entries for name in (entry.name, *entry.aliases)}


def explain(run: Run) -> list[str]:
    """One sentence for what was guessed, and one for what was not placed."""
    notes = []
    coverage = run.coverage
    guessed = [f"{key} as {name}" for name, key in coverage.metrics.items() if key != name]
    if guessed:
        notes.append(f"guessed by name: {_list(guessed)}")
    if coverage.unmapped:
        pairs = [f"{key}={suggest(key) or '<metric>'}" for key in coverage.unmapped]
        pairs.sort(key=lambda pair: pair.endswith("=<metric>"))
        options = " ".join(f"--field-map {shlex.quote(pair)}" for pair in pairs[:3])
        notes.append(f"not placed: {_list(coverage.unmapped)}. To place: {options} (`rldk catalog` lists the metrics)")
    return notes


def _list(names: list[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more
