"""One row of the index: what a table of runs shows of a run, and what is needed to know whether its log has changed; and all rows
as columns with fixed types.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rldk.comparison.grouping import plain_settings
from rldk.core.errors import require
from rldk.core.jsonio import MAX_STEP, to_number
from rldk.core.text import escaped, unescaped
from rldk.fleet.work import Reading, judge_whole, thinned
from rldk.ingest.read import LogFile
from rldk.judge.result import Result
from rldk.present.plots.source import is_date
from rldk.runs.run import Run
from rldk.storage.places import folder_of, shown

__all__ = [
    "COLUMNS", "CONFIG", "CURVES", "REWARDS", "SPARKLINE_CELLS", "index_file", "name_of", "path_of", "reward_metric", "row_of",
    "settings_in", "to_columns", "unread_row", "with_settings",
]  # fmt: skip

CONFIG = "config."
"""What the columns of the configuration begin with."""

COLUMNS: dict[str, str] = {
    "verdict": "string", "name": "string", "path": "string", "number": "int32", "run_id": "string", "state": "string",
    "reason": "string", "framework": "string", "adapter": "string", "kind": "string", "events": "int64", "first_step": "int64",
    "last_step": "int64", "started": "double", "ended": "double", "seconds": "double", "reward": "double", "kl": "double",
    "reward_metric": "string", "reward_curve": "list", "kl_curve": "list", "entropy_curve": "list", "length_curve": "list",
    "cause": "string", "cause_title": "string", "incidents": "names", "anomalies": "names",
    "onset_step": "int64", "last_good_step": "int64", "recovered_step": "int64", "lost_share": "double", "coverage": "string",
    "checks_active": "int32", "checks_total": "int32", "health": "double", "skipped_lines": "int64", "part_of": "string",
    "error": "string", "file_bytes": "int64", "file_changed": "int64", "marks": "marks",
}  # fmt: skip
"""The columns of every index and their types, in the order of the table; then come the settings, as `config.<name>`."""

SPARKLINE_CELLS = 32
CURVES = {"kl": "kl_mean", "entropy": "entropy_mean", "length": "rollout_length_mean"}
"""The metrics of which a thinned curve is kept, beside that of the reward."""

REWARDS = ("reward_mean", "preference_accuracy", "preference_margin", "eval_reward_mean")
"""What stands for the reward in a table of runs: the first of these that a run has."""


def reward_metric(names: Container[str]) -> str | None:
    """What stands for the reward of a run with these metrics."""
    return next((name for name in REWARDS if name in names), None)


def index_file(reading: Reading, log: LogFile) -> list[dict[str, Any]]:
    """Read and judge one file; a row for each of its runs."""
    return [row_of(result, number) for number, result in enumerate(judge_whole(reading, log).results)]


def settings_in(row: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run, as a row that was just made or one from an index has them."""
    if "config" in row:
        return dict(row["config"])
    return {name.removeprefix(CONFIG): value for name, value in row.items() if name.startswith(CONFIG) and value is not None}


def with_settings(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of an index, with its settings under `config`, as a row that was just made has them."""
    return {**{name: value for name, value in row.items() if not name.startswith(CONFIG)}, "config": settings_in(row)}


def unread_row(path: Path, reason: str) -> dict[str, Any]:
    """The row of a file that holds no run: it is not read again until it changes."""
    return {"path": name_of(path), "number": 0, "error": reason}


def name_of(path: Path) -> str:
    """A path as the index holds it: a name that is not UTF-8 is escaped."""
    return escaped(shown(path))


def path_of(name: str) -> Path:
    """The path that the index holds under a name."""
    path = folder_of(name)
    return path if path.exists() else folder_of(unescaped(name))


def row_of(result: Result, number: int) -> dict[str, Any]:
    """The row of a judged run, the `number`-th of its file."""
    run, worst, coverage = result.run, result.worst, result.coverage
    stop = result.would_stop
    reward = reward_metric(run.columns)
    return {
        "path": name_of(run.path),
        "number": number,
        "run_id": run.run_id,
        "verdict": result.verdict,
        "state": result.state,
        "reason": result.reason,
        "framework": run.framework,
        "adapter": run.adapter,
        "kind": run.kind,
        "events": len(run),
        "first_step": int(run.steps[0]) if len(run) else None,
        "last_step": int(run.steps[-1]) if len(run) else None,
        **_times(run),
        "reward": run.last(reward) if reward else None,
        "kl": run.last("kl_mean"),
        "reward_metric": reward,
        "reward_curve": _curve(run, reward),
        **{f"{name}_curve": _curve(run, metric) for name, metric in CURVES.items()},
        "cause": worst.cause if worst else None,
        "cause_title": worst.title if worst else None,
        "incidents": list(dict.fromkeys(incident.cause for incident in result.incidents)),
        "anomalies": list(dict.fromkeys(anomaly.type for anomaly in result.anomalies)),
        "onset_step": worst.step if worst else None,
        "last_good_step": worst.last_good_step if worst else None,
        "recovered_step": worst.recovered_step if worst else None,
        "lost_share": 0.0 if stop is None or not len(run) else run.share_after(stop["index"]),
        "coverage": coverage.level,
        "checks_active": coverage.active,
        "checks_total": coverage.total,
        "health": result.scores.get("overall_health"),
        "skipped_lines": result.skipped_lines,
        "marks": sorted(run.beginning_marks()),
        "config": plain_settings(run.config),
    }


def _times(run: Run) -> dict[str, float | None]:
    """When the run began and ended, and how long it took, as far as its log says."""
    known = run.wall_time[np.isfinite(run.wall_time)]
    if not len(known):
        return {"started": None, "ended": None, "seconds": None}
    first, last = float(known.min()), float(known.max())
    dated = is_date(first)
    return {"started": first if dated else None, "ended": last if dated else None, "seconds": last - first}


def _curve(run: Run, name: str | None) -> list[float | None]:
    """A thinned curve; empty where the metric was not logged."""
    if name not in run.columns:
        return []
    values = thinned(run.columns[name], SPARKLINE_CELLS).values.tolist()
    return [round(value, 6) if math.isfinite(value) else None for value in values]


def to_columns(rows: Sequence[Mapping[str, Any]]) -> Any:
    """The rows as a `pyarrow.Table`."""
    arrow = require("pyarrow", extra="fleet", purpose="The index")
    types = {
        "string": arrow.string(), "int32": arrow.int32(), "int64": arrow.int64(), "double": arrow.float64(),
        "list": arrow.list_(arrow.float32()), "names": arrow.list_(arrow.string()), "marks": arrow.list_(arrow.uint32()),
    }  # fmt: skip
    data = {name: arrow.array([_storable(row.get(name)) for row in rows], types[kind]) for name, kind in COLUMNS.items()}
    for name in sorted({name for row in rows for name in row.get("config") or {}}):
        values = [_storable((row.get("config") or {}).get(name)) for row in rows]
        data[CONFIG + escaped(name)] = arrow.array(*_one_type(values, arrow))
    return arrow.table(data)


def _storable(value: Any) -> Any:
    """A value as a column takes it: text that is not Unicode is escaped, and a whole number beyond 64 bits is a float."""
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, list) and value and isinstance(value[0], str):
        return [escaped(one) for one in value]
    return to_number(value) if isinstance(value, int) and abs(value) > MAX_STEP else value


def _one_type(values: list[Any], arrow: Any) -> tuple[list[Any], Any]:
    """Values of one setting in one type: truth values, numbers, or text where they differ."""
    given = [value for value in values if value is not None]
    if _all(given, bool):
        return values, arrow.bool_()
    if _all(given, (int, float)):
        return [None if value is None else float(value) for value in values], arrow.float64()
    return [None if value is None else str(value) for value in values], arrow.string()


def _all(values: Iterable[Any], kinds: type | tuple[type, ...]) -> bool:
    return all(isinstance(value, kinds) for value in values)
