"""Lines of several kinds in one file: rows of training, of evaluation, and lines that are no steps at all."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rldk.adapters.formats.flat import flatten
from rldk.core.catalog import is_measured
from rldk.core.catalog.axes import HELD_OUT, STEP_KEYS, is_axis, strip_eval

__all__ = ["KINDS", "bare_kinds", "has_step", "kind_key", "place_kinds"]

KINDS = ("type", "event", "kind", "phase", "split", "stage", "mode")


def has_step(row: Mapping[str, Any]) -> bool:
    """Whether a row says its step."""
    return any(name in row for name in STEP_KEYS)


def kind_key(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """The key that says what a line is, if the rows have one: it names held-out data, or else says different things."""
    said = {key: {row[key].lower() for row in rows if type(row.get(key)) is str} for key in KINDS}
    held_out = next((key for key in KINDS if said[key] & HELD_OUT), None)
    return held_out or next((key for key in KINDS if len(said[key]) > 1), None)


def bare_kinds(rows: Sequence[Mapping[str, Any]], key: str, mapped: Collection[str] = ()) -> frozenset[str]:
    """The kinds that come once and measure nothing that is known, such as a first line with the run's settings.

    Where no kind measures anything known, nothing is left out.
    """
    counts: dict[str, int] = {}
    measuring: set[str] = set()
    for row in rows:
        if type(kind := row.get(key)) is str:
            counts[kind] = counts.get(kind, 0) + 1
            if any(name in mapped or is_measured(name) for name in flatten(row)):
                measuring.add(kind)
    return frozenset(kind for kind, count in counts.items() if measuring and kind not in measuring and count == 1)


def place_kinds(
    rows: Iterable[Mapping[str, Any]], key: str, notes: list[str], *, stepped: bool = True, bare: Collection[str] = ()
) -> Iterator[Mapping[str, Any]]:
    """Rows of held-out data get `eval_` before their metrics; where rows have steps (`stepped`), lines of a kind that
    never has one are left out, and said to be. So is the first line of each kind in `bare`.

    Without this, an evaluation would overwrite the metrics of the training step it was made at.
    """
    counts: dict[str, int] = {}
    counted: set[str] = set()
    told: set[str] = set()
    for row in rows:
        kind = row.get(key)
        if type(kind) is not str:
            yield row
            continue
        if kind in bare and kind not in told:
            told.add(kind)
            notes.append(f"a line with {key}={kind!r} measures nothing that is known and was left out")
            continue
        if has_step(row):
            counted.add(kind)
        elif stepped and kind not in counted:
            counts[kind] = counts.get(kind, 0) + 1
            continue
        yield _held_out(row) if kind.lower() in HELD_OUT else row
    for kind, count in counts.items():
        notes.append(f"{count} line(s) with {key}={kind!r} have no step and were left out")


def _held_out(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name if _stays(name) else f"eval_{name}": value for name, value in row.items()}


def _stays(name: str) -> bool:
    return is_axis(name) or name in KINDS or name == "epoch" or strip_eval(name) is not None
