"""From a raw table to runs: find the steps, leave out what is no step, tell the runs apart, merge rows, name the metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rldk.core.catalog import CATALOG, Plan, Route, identify, plan_for
from rldk.core.catalog.axes import LABEL_KEYS, PHASE_KEYS, RUN_KEYS, STEP_KEYS, SUMMARY_KEYS, TIME_KEYS
from rldk.core.catalog.metric import TRANSFORMS
from rldk.runs.run import Coverage, Run
from rldk.runs.split import split_runs
from rldk.runs.table import ABSENT, NULL, NUMBER, TEXT, Column, Table
from rldk.runs.times import parse_seconds, parse_step

__all__ = ["build_runs"]

Rows = npt.NDArray[np.intp]
_OF_A_STEP = frozenset({"kl", "policy", "reward", "advantage", "value", "length", "gradient", "preference", "mismatch"})


def build_runs(
    table: Table,
    *,
    path: Path,
    adapter: str,
    framework: str | None = None,
    field_map: Mapping[str, str] | None = None,
    reductions: Mapping[str, str] | None = None,
) -> list[Run]:
    """The runs that a table holds, in the order in which they begin."""
    targets = {target: source for source, target in (field_map or {}).items()}
    framework = framework or identify(table.names)
    plan = plan_for(table.names, framework, tuple(sorted((field_map or {}).items())))
    columns, coverage = _canonical(table, plan)
    coverage.reductions.update(reductions or {})
    labels = {name: table.column(key) for name, keys in LABEL_KEYS.items() for key in keys if key in table.names}
    kept, notes = _rows_with_metrics(table, columns)
    steps, counted = _steps(table, targets.get("step"), kept)
    notes += counted
    times = _times(table, targets.get("wall_time"))
    phase = _first_words(table, (targets.get("phase"), *PHASE_KEYS))
    if phase is not None:
        labels["phase"] = phase
    runs = []
    for name, rows in _by_run_id(table, targets.get("run_id"), kept):
        split = split_runs(steps[rows], table.shapes[rows])
        for number, chosen in enumerate(split.runs):
            run_id = name or _stem(path)
            if len(split.runs) > 1:
                run_id = f"{run_id}#{number + 1}"
            picked = rows[chosen]
            take = _taker(picked, table.rows)
            run = Run(
                run_id, path, adapter, framework, steps[picked], times[picked],
                {key: take(column) for key, column in columns.items()},
                replace(coverage), {key: take(column) for key, column in labels.items()}, [*notes, *split.notes],
            )  # fmt: skip
            _merge_rows_of_a_step(run)
            _drop_empty(run)
            runs.append(run)
    return runs


def _taker(picked: Rows, rows: int) -> Callable[[Column], Column]:
    """How a run's rows are taken from the table; all of them in order need no copy."""
    if len(picked) == rows and bool((np.diff(picked) == 1).all()):
        return lambda column: column
    return lambda column: column.take(picked)


_SUFFIXES = frozenset({".json", ".jsonl", ".ndjson", ".log", ".txt", ".out", ".csv", ".tsv", ".parquet", ".gz", ".zst", ".db", ".wandb"})


def _stem(path: Path) -> str:
    """A run's name by its file: the file's, or its folder's where the file has a name that all runs' files have."""
    stem = path.name
    while (suffix := Path(stem).suffix) in _SUFFIXES:
        stem = stem.removesuffix(suffix)
    common = {
        "metrics",
        "trainer_state",
        "events",
        "log",
        "train",
        "logging",
        "progress",
        "trajectory",
        "history",
        "output",
        "trainer_log",
    }
    return path.absolute().parent.name or stem if stem in common else stem


def _canonical(table: Table, plan: Plan) -> tuple[dict[str, Column], Coverage]:
    coverage = Coverage()
    columns: dict[str, Column] = {}
    for name, routes in plan.routes.items():
        column: Column | None = None
        for route in routes:
            made = _follow(table, route)
            if not (made.state != ABSENT).any():
                continue
            if (made.state == NUMBER).any():
                if name in coverage.metrics:
                    coverage.duplicates[route.source] = name
                else:
                    coverage.metrics[name] = route.source
                    coverage.reductions[name] = route.per
            column = made if column is None else _fill(column, made)
        if column is not None:
            columns[name] = column
    for name in plan.unmapped:
        column = table.column(name)
        if (column.state == NUMBER).any():
            coverage.unmapped.append(name)
            columns[name] = column
    return columns, coverage


def _follow(table: Table, route: Route) -> Column:
    """A metric's column by one route; a sum needs all of its parts."""
    made = table.column(route.parts[0])
    made.state[made.state == TEXT] = ABSENT
    made.codes, made.words = None, ()
    for part in route.parts[1:]:
        other = table.column(part)
        both = (made.state == NUMBER) & (other.state == NUMBER)
        made.values = np.where(both, made.values + other.values, np.nan)
        made.state = np.where(both, NUMBER, ABSENT).astype(np.uint8)
    if route.transform == "root":
        made.values = np.sqrt(np.where(made.values >= 0, made.values, np.nan))
    elif route.transform != "same":
        made.values = np.asarray(TRANSFORMS[route.transform](made.values))  # type: ignore[arg-type]
    return made


def _fill(first: Column, second: Column) -> Column:
    """The first route's cells, and the second's where the first has no number."""
    open_ = first.state != NUMBER
    take = open_ & (second.state != ABSENT)
    return Column(np.where(take, second.values, first.values), np.where(take, second.state, first.state))


def _rows_with_metrics(table: Table, columns: Mapping[str, Column]) -> tuple[Rows, list[str]]:
    """The rows that measure something; what a trainer writes once at the end is not a step."""
    measured = np.zeros(table.rows, dtype=bool)
    for name, column in columns.items():
        if name not in ("epoch", "episodes", "global_step"):
            measured |= (column.state == NUMBER) | (column.state == NULL)
    summary = np.zeros(table.rows, dtype=bool)
    for name in SUMMARY_KEYS.intersection(table.names):
        summary |= table.column(name).state == NUMBER
    for name, column in columns.items():
        if (entry := CATALOG.get(name)) is not None and entry.group in _OF_A_STEP:
            summary &= column.state == ABSENT
    notes = []
    if summary.any():
        notes.append(f"{int(summary.sum())} summary row(s) of the whole run left out")
    bare = ~measured & ~summary
    if bare.any() and measured.any():
        notes.append(f"{int(bare.sum())} row(s) without any metric left out")
    return np.flatnonzero(measured & ~summary).astype(np.intp), notes


def _steps(table: Table, given: str | None, kept: Rows) -> tuple[npt.NDArray[np.int64], list[str]]:
    """Each row's step; a row without one has that of the row before it, and a table without any is numbered.

    Of several keys that may hold the step, the first that half of the rows have is taken, or else the most frequent.
    """
    candidates: list[tuple[float, npt.NDArray[np.bool_], npt.NDArray[np.float64]]] = []
    for name in [given] if given else STEP_KEYS:
        if name in table.names:
            column = table.column(name)
            _read_words(column, parse_step)
            whole = (column.state == NUMBER) & np.isfinite(column.values) & (np.abs(column.values) < 2**62)
            whole[whole] = column.values[whole] == np.floor(column.values[whole])
            share = float(whole[kept].mean()) if len(kept) else 0.0
            candidates.append((min(share, 0.5), whole, column.values))
    share, whole, values = max(candidates, key=lambda found: found[0], default=(0.0, np.zeros(0, dtype=bool), np.zeros(0)))
    if not share:
        steps = np.zeros(table.rows, dtype=np.int64)
        steps[kept] = np.arange(1, len(kept) + 1)
        return steps, ["no step was logged: rows are numbered from 1"] if len(kept) else []
    seen = np.maximum.accumulate(np.where(whole, np.arange(table.rows), -1))
    first = int(np.flatnonzero(whole)[0])
    steps = np.where(whole, values, 0)[np.where(seen < 0, first, seen)].astype(np.int64)
    missing = int((~whole[kept]).sum())
    return steps, [f"{missing} row(s) without a step took that of the row before"] if missing else []


def _read_words(column: Column, parse: Callable[[str], float | None]) -> None:
    """Turn words into numbers where they stand for one."""
    if column.codes is not None and column.words:
        parsed = [parse(word) for word in column.words]
        numbers = np.array([np.nan if number is None else number for number in parsed], dtype=np.float64)
        stands = np.array([number is not None for number in parsed])
        cells = np.flatnonzero((column.codes >= 0) & (column.state == TEXT))
        cells = cells[stands[column.codes[cells]]]
        column.values[cells], column.state[cells] = numbers[column.codes[cells]], NUMBER


def _times(table: Table, given: str | None) -> npt.NDArray[np.float64]:
    for name in [given] if given else TIME_KEYS:
        if name in table.names:
            column = table.column(name)
            _read_words(column, parse_seconds)
            if np.isfinite(column.values).any():
                return column.values
    return np.full(table.rows, np.nan)


def _first_words(table: Table, names: tuple[str | None, ...]) -> Column | None:
    for name in names:
        if name is not None and name in table.names:
            column = table.column(name)
            if column.words:
                return column
    return None


def _by_run_id(table: Table, given: str | None, kept: Rows) -> list[tuple[str | None, Rows]]:
    """The rows of each run that the log names; all of them where it names none."""
    column = _first_words(table, (given, *RUN_KEYS))
    if column is None or column.codes is None or not len(kept):
        return [(None, kept)] if len(kept) else []
    codes = column.codes[kept]
    first_seen = {
        int(code): position
        for position, code in reversed(list(enumerate(codes[np.sort(np.unique(codes, return_index=True)[1])])))
    }
    return [
        (None if code < 0 else column.words[code], kept[codes == code]) for code in sorted(first_seen, key=first_seen.__getitem__)
    ]


def _merge_rows_of_a_step(run: Run) -> None:
    """Several rows of one step become one: of each metric the value that was logged last."""
    starts = np.flatnonzero(np.diff(run.steps, prepend=run.steps[0] - 1 if len(run) else 0))
    if len(starts) == len(run):
        return
    run.notes.append(f"{len(run) - len(starts)} row(s) merged into the row of the same step; the last value logged wins")
    number = np.arange(len(run))
    for columns in (run.columns, run.labels):
        for name, column in columns.items():
            last = np.maximum.reduceat(np.where(column.state != ABSENT, number, -1), starts)
            columns[name] = column.take(np.where(last < 0, starts, last).astype(np.intp))
    timed = np.maximum.reduceat(np.where(np.isnan(run.wall_time), -1, number), starts)
    run.wall_time = run.wall_time[np.where(timed < 0, starts, timed)]
    run.steps = run.steps[starts]


def _drop_empty(run: Run) -> None:
    """A run keeps the columns it logged; other runs of the file may have had more."""
    run.columns = {name: column for name, column in run.columns.items() if (column.state != ABSENT).any()}
    run.coverage.metrics = {name: key for name, key in run.coverage.metrics.items() if name in run.columns}
    run.coverage.reductions = {name: per for name, per in run.coverage.reductions.items() if name in run.columns}
    run.coverage.unmapped = [name for name in run.coverage.unmapped if name in run.columns]
