"""CSV and TSV with a header: CleanRL, Stable-Baselines3's `progress.csv` and `monitor.csv`, exports of W&B."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from rldk.adapters.base import Adapter
from rldk.adapters.formats import console, delimited
from rldk.adapters.formats.cells import Cells, Columns
from rldk.adapters.formats.delimited import Header
from rldk.adapters.guesses import placeable
from rldk.core.errors import ReadError
from rldk.runs.table import TableBuilder

__all__ = ["DelimitedAdapter"]

_MONITOR = {"r": "reward_mean", "l": "rollout_length_mean", "t": "wall_time"}
_CHART = re.compile(r"(.+) - (.+?)(__MIN|__MAX)?")
_CHART_STEPS = ("Step", "Relative Time (Process)", "Relative Time (Wall)", "Wall Time", "Time")


class DelimitedAdapter(Adapter):
    """Reads a table with a header.

    `monitor.csv` of Stable-Baselines3 has a row for each episode, under the names `r`, `l` and `t`. A chart that
    Weights & Biases exports has a column for each run, `name of the run - train/reward`, and two more for its range.
    """

    name: ClassVar[str] = "csv"
    title: ClassVar[str] = "CSV or TSV with a header"

    def can_handle(self) -> bool:
        self.why = "no table with a header"
        header = delimited.header_of(self.source) if console.is_text(self.source) else None
        if header is None:
            return False
        if _is_monitor(header):
            self.why = "the monitor file of Stable-Baselines3"
            return True
        names = list(header.names)
        if charts := _charts(header):
            names = [metric for columns in charts.values() for metric in columns.values()]
        known = placeable(names, self.field_map)
        self.why = f"a table in which {len(known)} of {len(names)} columns are known metrics"
        return bool(known)

    def _header(self) -> Header:
        header = delimited.header_of(self.source) if console.is_text(self.source) else None
        if header is None:
            raise ReadError(f"{self.source.path} is not a table with a header.")
        if _is_monitor(header):
            self.field_map = {**_MONITOR, **self.field_map}
            self.notes.append("each row is an episode, not a step of the optimizer")
        return header

    def read(self) -> Iterator[Mapping[str, Any]]:
        return delimited.iter_rows(self.source, self._header(), self.problems, self.notes, self.progress)

    def fill(self, builder: TableBuilder) -> None:
        header = self._header()
        charts = _charts(header)
        if charts and any(name.endswith("__MIN") for name in header.names):
            self.notes.append("the columns __MIN and __MAX (the range over grouped runs) were left out")
        read = Columns(header.delimiter)
        for rows, columns in delimited.iter_columns(self.source, header, self.problems, self.notes, self.progress, read):
            for part in _by_run(columns, charts, rows):
                builder.add_columns(part, rows)
        for name in placeable(read.words, self.field_map):
            if name not in read.met:
                self.notes.append(f"no numbers in the column {name!r}, but words such as {read.words[name]!r}: left out")


def _is_monitor(header: Header) -> bool:
    return {"r", "l", "t"} <= set(header.names)


def _charts(header: Header) -> dict[str, dict[str, str]]:
    """Run -> column -> metric, where the table is an exported chart."""
    if header.names[0] not in _CHART_STEPS:
        return {}
    found: dict[str, dict[str, str]] = {}
    for name in header.names[1:]:
        match = _CHART.fullmatch(name)
        if match is None:
            return {}
        if match.group(3) is None and match.group(2) != "_step":
            found.setdefault(match.group(1), {})[name] = match.group(2)
    return found


def _by_run(columns: dict[str, Cells], charts: dict[str, dict[str, str]], rows: int) -> Iterator[dict[str, Cells]]:
    """The columns of each run that has a name of its own in the header; all of them where none has."""
    if not charts:
        yield columns
        return
    own = {name for names in charts.values() for name in names}
    shared = {name: cells for name, cells in columns.items() if name not in own and not _CHART.fullmatch(name)}
    for run, names in charts.items():
        metrics = {metric: columns[name] for name, metric in names.items() if name in columns}
        yield {**shared, **metrics, "run": [run] * rows}
