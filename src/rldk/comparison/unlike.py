"""What keeps runs from being compared: a metric in different units, and trainings of different kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from rldk.core.catalog import entry_of
from rldk.core.text import listed
from rldk.runs.run import Run
from rldk.signals.kl import UNITS

__all__ = ["other_units", "why_unlike"]

_KINDS = {"rl": "reinforcement learning", "preference": "preference training", "supervised": "supervised training"}


def other_units(metric: str, runs: Sequence[Run]) -> bool:
    """Whether some of these runs have a metric in nats per token, and others in nats per response."""
    entry = entry_of(metric)
    return entry is not None and entry.unit == "nats" and len({_per(metric, run) for run in runs} - {""}) > 1


def why_unlike(groups: Mapping[str, Sequence[Run]], metrics: Sequence[str]) -> list[str]:
    """The notes of a comparison: one per metric left out because its units differ, and one if the kinds of training do."""
    runs = [run for members in groups.values() for run in members]
    said = []
    for metric in (one for one in metrics if other_units(one, runs)):
        units = _named(groups, partial(_per, metric))
        where = listed([f"per {per} in {listed(names)}" for per, names in units.items()])
        said.append(f"{metric} is left out: it is {where}.")
    kinds = _named(groups, lambda run: _KINDS.get(run.kind, ""))
    if len(kinds) > 1:
        which = listed([f"{listed(names)} {'is' if len(names) == 1 else 'are'} {kind}" for kind, names in kinds.items()])
        said.append(f"The runs are of different kinds: {which}. Metrics that both log may not mean the same.")
    return said


def _per(metric: str, run: Run) -> str:
    return UNITS.get(run.coverage.reductions.get(metric, ""), "") if metric in run.columns else ""


def _named(groups: Mapping[str, Sequence[Run]], what: Callable[[Run], str]) -> dict[str, list[str]]:
    """The names of the groups by a property of their runs, where it is known."""
    found: dict[str, list[str]] = {}
    for name, runs in groups.items():
        for value in dict.fromkeys(map(what, runs)):
            if value:
                found.setdefault(value, []).append(name)
    return found
