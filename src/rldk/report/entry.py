"""One line of the table of runs: what an index keeps of a run, with the whole case of one that is shown in detail."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from typing import Any

import numpy as np

from rldk.fleet.row import CURVES, row_of
from rldk.present.plots.panel import FloatArray
from rldk.present.plots.source import Source, Span
from rldk.present.verdicts import VERDICTS, ranking
from rldk.report.case import Case

__all__ = ["Entry", "Row", "entries_of", "rank"]

Row = Mapping[str, Any]


def rank(row: Row) -> tuple[int, int, float, str]:
    """The key by which runs are sorted, the worst first: by verdict, by how many kinds of anomalies they have, by health."""
    health = row.get("health")
    return *ranking(row["verdict"], len(row.get("anomalies") or ())), 1.0 if health is None else health, row["name"] or ""


class ThinSource:
    """The curves that an index keeps of a run, of which each value stands for an equal share of its rows."""

    def __init__(self, row: Row, axis: str = "step") -> None:
        self.run_id = str(row["name"])
        self.axis = axis
        curves = {row.get("reward_metric") or "reward_mean": row.get("reward_curve")}
        curves |= {metric: row.get(f"{name}_curve") for name, metric in CURVES.items()}
        self._curves = {name: np.array([nan if y is None else y for y in curve]) for name, curve in curves.items() if curve}
        self.ends = _ends(row, axis)

    def names(self) -> Collection[str]:
        return self._curves

    def places(self, steps: FloatArray) -> FloatArray:
        return steps if self.axis == "step" else np.full(len(steps), nan)

    def points(self, names: Sequence[str], buckets: int, span: Span = None) -> tuple[FloatArray, list[FloatArray]]:
        columns = [self._curves[name] for name in names]
        x = np.linspace(*self.ends, len(columns[0]))
        there = np.isfinite(columns[0])
        if span is not None:
            there &= (x >= span[0]) & (x <= span[1])
        return x[there], [column[there] for column in columns]


def _ends(row: Row, axis: str) -> tuple[float, float]:
    if axis == "hours":
        return 0.0, (row.get("seconds") or 0.0) / 3600
    return float(row.get("first_step") or 0), float(row.get("last_step") or 0)


@dataclass(frozen=True, slots=True)
class Entry:
    """One run of a page: its row, and its case where it is shown in detail."""

    row: Row
    case: Case | None = None
    axis: str = "step"

    @property
    def name(self) -> str:
        return str(self.row["name"])

    @property
    def verdict(self) -> str:
        return str(self.row["verdict"])

    @property
    def acknowledged(self) -> bool:
        """Whether everything that makes the verdict was acknowledged."""
        return self.case is not None and self.case.judgement.open_verdict != self.case.judgement.verdict

    @property
    def cause(self) -> str:
        recovered = self.row.get("recovered_step")
        if not self.row.get("cause_title"):
            return str(self.row["reason"])
        return f"{self.row['cause_title']}{'' if recovered is None else f', recovered at step {recovered}'}"

    @property
    def source(self) -> Source:
        return self.case.source if self.case is not None else ThinSource(self.row, self.axis)

    @property
    def ends(self) -> tuple[float, float]:
        """Where the run begins and ends on the x axis."""
        return _ends(self.row, self.axis)

    def last(self, name: str) -> float | None:
        """The last value of `reward`, `kl`, `entropy` or `length`."""
        if name in ("reward", "kl"):
            value = self.row.get(name)
            return None if value is None else float(value)
        known = [value for value in self.row.get(f"{name}_curve") or () if value is not None and isfinite(value)]
        return float(known[-1]) if known else None


def entries_of(cases: Sequence[Case], others: Sequence[Row] = ()) -> list[Entry]:
    """The lines of a page, the worst first. `others` are rows of runs that are not shown in detail."""
    axis = cases[0].axis if cases else "step"
    found = [Entry({**row_of(case.judgement, 0), "name": case.judgement.run.run_id}, case, axis) for case in cases]
    found += [Entry(row, None, axis) for row in others]
    return sorted(found, key=lambda entry: (VERDICTS.index(entry.verdict), entry.acknowledged, rank(entry.row)))
