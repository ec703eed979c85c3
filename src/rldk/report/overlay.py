"""The curves of many runs in one figure each: all runs, of which the worst are drawn at first, and groups of runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from rldk.comparison.grouping import ALL_SETTINGS, differing_settings, group_names, shown_value
from rldk.core.errors import UsageError
from rldk.core.jsonio import to_number
from rldk.core.text import did_you_mean
from rldk.fleet.row import settings_in
from rldk.present.plots.build import panels_of
from rldk.present.plots.groups import group_panels
from rldk.present.plots.panel import Curve, FloatArray, Panel
from rldk.present.plots.source import Source, Span
from rldk.present.plots.standard import MAIN_PANELS
from rldk.report.entry import Entry

__all__ = ["SHOWN_FIRST", "Beginning", "Overlay", "differ_in_length", "grouping_choices", "long_runs", "overlays_of"]

SHOWN_FIRST = 5
"""How many of the worst runs are drawn before the reader chooses."""

_MAX_VALUES, _MAX_CHOICES = 12, 4
_FAR = 5.0
_SHARES = (4, 16, 64)


@dataclass(slots=True)
class Overlay:
    """One figure: the curves of all runs (`colour` is the number of the run on the page), and those of each grouping.

    `drawn` is what the picture shows that needs no script.
    """

    panel: Panel
    drawn: Panel
    groups: dict[str, list[Curve]] = field(default_factory=dict)


def overlays_of(entries: Sequence[Entry], choices: dict[str, list[str]], buckets: int, group_by: str = "") -> list[Overlay]:
    """The figures of a page with several runs; with `group_by`, one of the `choices`, that is what is drawn at first."""
    lengths = [end - start for start, end in (entry.ends for entry in entries)]
    sources = [_source(entry, longer) for entry, longer in zip(entries, long_runs(lengths), strict=True)]
    squeezed = differ_in_length(lengths[:SHOWN_FIRST])
    grouped = {name: _grouped(sources, groups, squeezed) for name, groups in choices.items()}
    made = []
    for panel in panels_of(sources, buckets=buckets, x_log=squeezed):
        groups = {name: found[panel.key] for name, found in grouped.items() if panel.key in found}
        first = [curve for curve in panel.curves if curve.colour < SHOWN_FIRST]
        made.append(Overlay(panel, replace(panel, curves=groups.get(group_by, first)), groups))
    return made


def _source(entry: Entry, longer: bool) -> Source:
    return Beginning(entry.source, *entry.ends) if longer and entry.case is not None else entry.source


def differ_in_length(lengths: Sequence[float]) -> bool:
    """Whether the longest run would squeeze the shorter ones on an axis of steps: five times the lower quartile or more.

    A logarithmic axis keeps a step of one run above the same step of another, which a share of each run's length would not.
    """
    return any(long_runs(lengths))


def long_runs(lengths: Sequence[float]) -> list[bool]:
    """Which runs are so long that others would be squeezed beside them."""
    known = [length for length in lengths if length > 0]
    quartile = float(np.quantile(known, 0.25)) if known else 0.0
    return [quartile > 0 and length >= _FAR * quartile for length in lengths]


class Beginning:
    """A run with more points at its beginning, where it is drawn beside shorter ones."""

    def __init__(self, source: Source, start: float, end: float) -> None:
        self._source = source
        self._spans: list[Span] = [(start, start + (end - start) / share) for share in _SHARES]
        self.run_id, self.axis = source.run_id, source.axis
        self.reductions: dict[str, str] = getattr(source, "reductions", {})

    def names(self) -> Collection[str]:
        return self._source.names()

    def places(self, steps: FloatArray) -> FloatArray:
        return self._source.places(steps)

    def points(self, names: Sequence[str], buckets: int, span: Span = None) -> tuple[FloatArray, list[FloatArray]]:
        if span is not None:
            return self._source.points(names, buckets, span)
        parts = [self._source.points(names, max(1, buckets // 2), one) for one in (*self._spans, None)]
        x = np.concatenate([part[0] for part in parts])
        _, kept = np.unique(x, return_index=True)
        return x[kept], [np.concatenate([part[1][place] for part in parts])[kept] for place in range(len(names))]


def _grouped(sources: Sequence[Source], names: Sequence[str], x_log: bool) -> dict[str, list[Curve]]:
    """The curves of each main panel for one grouping, of the largest groups."""
    groups: dict[str, list[Source]] = {}
    for name, source in zip(names, sources, strict=True):
        groups.setdefault(name, []).append(source)
    largest = sorted(groups, key=lambda name: len(groups[name]), reverse=True)[:_MAX_VALUES]
    kept = {name: groups[name] for name in sorted(largest, key=_by_value)}
    return {panel.key: panel.curves for panel in group_panels(kept, *MAIN_PANELS, buckets=48, x_log=x_log)}


def _by_value(name: str) -> tuple[float, str]:
    """The order of groups: `lr=1e-06` before `lr=1e-05`."""
    value = to_number(name.rpartition("=")[2])
    return (inf if value is None else value, name)


def grouping_choices(entries: Sequence[Entry], wanted: str | None = None) -> dict[str, list[str]]:
    """By what the runs can be grouped: for each choice the name of every run's group.

    The choices are all settings but the seed, and each setting with a few values of which one is shared; `wanted` comes first,
    and is an error where no run has it.
    """
    settings = [settings_in(entry.row) for entry in entries]
    differing = differing_settings(settings)
    found: dict[str, list[str]] = {}
    for by in dict.fromkeys([*([wanted] if wanted else []), ALL_SETTINGS, *differing]):
        names = group_names(settings, by)
        given = [name for name in names if name is not None]
        if by == wanted and not given:
            known = sorted({name for own in settings for name in own})
            raise UsageError(f"Cannot group by {by!r}: no run has such a setting.{did_you_mean(by, known)}")
        if by == wanted or (2 <= len(set(given)) <= _MAX_VALUES and len(set(given)) < len(given)):
            label = "configuration" if by == ALL_SETTINGS else by.removeprefix("config.")
            missing = f"{label}={shown_value(None)}"
            found[label] = [missing if name is None else name for name in names]
    return dict(list(found.items())[:_MAX_CHOICES])
