"""What was guessed of a log's keys, which keys were not recognised, and the field map that would map them."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import islice

from rldk.core.catalog import CATALOG, is_measured
from rldk.core.catalog.guess import guess
from rldk.core.catalog.metric import normalise
from rldk.runs.run import Run

__all__ = ["MAX_SUGGESTED", "explain", "guesses_of", "listed", "placeable", "suggest", "unplaced"]

_ALIKE = 0.75
_MAX_LOOKED_AT = 10_000  # keys
MAX_SUGGESTED = 100
"""How many unrecognised keys are compared with the catalogue in search of typos; each takes milliseconds."""
_UNRECOGNISED = "unrecognised keys: "
_OF_TIME = re.compile(r"(?:^|[/_.])(?:time|timing|timers?|timeperf|perf|memory|mem|system)(?:$|[/_.])")


def placeable(keys: Iterable[str], field_map: Mapping[str, str]) -> list[str]:
    """The keys that make rows out of a table: what the catalogue knows or guesses to be measured, and what is mapped."""
    looked_at = islice(keys, _MAX_LOOKED_AT)
    return [key for key in looked_at if key in field_map or is_measured(key) or guess(key) is not None]


def suggest(key: str) -> str | None:
    """The metric that a misspelt key means, by its name or an alias; `None` if there is none."""
    names = _names()
    for said in dict.fromkeys((normalise(key), normalise(key.rsplit("/", 1)[-1]))):
        near = difflib.get_close_matches(said, names, n=8, cutoff=0.75)
        if found := next((name for name in near if _is_close(said, name)), None):
            return names[found]
    return None


def _is_close(said: str, name: str) -> bool:
    """Whether two names are the same word for word, or almost; a word more or another one is another metric."""
    if said.replace("_", "") == name.replace("_", ""):
        return True
    words, others = said.split("_"), name.split("_")
    return len(said) > 4 and len(words) == len(others) and all(map(_is_slip, words, others))


def _is_slip(word: str, other: str) -> bool:
    if word == other:
        return True
    if min(len(word), len(other)) < 3 or abs(len(word) - len(other)) > 1:
        return False
    return difflib.SequenceMatcher(None, word, other).ratio() >= _ALIKE


@cache
def _names() -> dict[str, str]:
    entries = [entry for entry in CATALOG.values() if not entry.name.endswith("/*")]
    return {normalise(name): entry.name for entry in entries for name in (entry.name, *entry.aliases)}


def explain(run: Run) -> list[str]:
    """One sentence for what was guessed, and one for the keys that were not recognised."""
    notes = []
    coverage = run.coverage
    guessed = [f"{key} as {name}" for name, key in coverage.metrics.items() if key != name]
    if guessed:
        notes.append(f"guessed by name: {listed(guessed)}")
    return [*notes, *unplaced(run)]


def guesses_of(run: Run) -> list[str]:
    """One sentence for the metrics that were guessed by the parts of a name, where there are any."""
    names = {key: name for name, key in run.coverage.metrics.items()}
    guessed = [f"{key} as {names[key]}" for key in run.coverage.guessed if key in names]
    return [f"guessed by the parts of its name: {listed(guessed)}"] if guessed else []


def unplaced(run: Run) -> list[str]:
    """One sentence for the keys that were not recognised, where there are any and no note names them yet; times come last."""
    keys = sorted(run.coverage.unmapped, key=lambda key: _OF_TIME.search(key.lower()) is not None)
    if not keys or any(note.startswith(_UNRECOGNISED) for note in run.notes):
        return []
    near = {key: name for key in keys[:MAX_SUGGESTED] if (name := suggest(key))}
    pairs = [f"{key}={name}" for key, name in near.items()][:2]
    pairs += [f"{key}=<metric>" for key in keys if key not in near][:1]
    options = " ".join(f"--field-map {shlex.quote(pair)}" for pair in pairs)
    return [f"{_UNRECOGNISED}{listed(keys)}; map them with {options} (`rldk catalog` lists the metrics)"]


def listed(names: list[str], most: int = 8) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
