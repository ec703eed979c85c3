"""From a raw table to runs: find the steps, drop rows that are not steps, split the runs, merge rows, name the metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from rldk.core.catalog import CATALOG, identify, plan_for
from rldk.core.catalog.axes import LABEL_KEYS, PHASE_KEYS, REDUCTION_KEY, SUMMARY_KEYS
from rldk.core.catalog.metric import REDUCTIONS
from rldk.core.jsonio import loads
from rldk.core.run_config import CONFIG_KEY, RunConfig
from rldk.core.text import counted
from rldk.runs.canonical import POSITIONS, canonical_columns, fullest, held_out_rows, prefix_held_out_rows
from rldk.runs.merge import merge_rows_of_a_step
from rldk.runs.percentages import percent_to_fraction
from rldk.runs.row_axes import count_over_epochs, find_runs, find_steps, find_times, first_words
from rldk.runs.run import Coverage, Run
from rldk.runs.split import split_runs
from rldk.runs.table import ABSENT, NULL, NUMBER, Column, Rows, Table

__all__ = ["build_runs"]

_OF_A_STEP = frozenset({"kl", "policy", "reward", "advantage", "value", "length", "gradient", "preference", "mismatch"})


def build_runs(
    table: Table,
    *,
    path: Path,
    adapter: str,
    framework: str | None = None,
    field_map: Mapping[str, str] | None = None,
) -> list[Run]:
    """The runs that a table holds, in the order in which they begin."""
    targets = {target: source for source, target in (field_map or {}).items()}
    framework = framework or identify(table.names)
    plan = plan_for(table.names, framework, tuple(sorted((field_map or {}).items())), guesses=True)
    columns, coverage = canonical_columns(table, plan)
    percentages = [] if framework == "rldk" else percent_to_fraction(columns)  # what rldk wrote has been read before
    left_out = sum(len(names) - len(fullest(table, names)) for names in (plan.unmapped, plan.not_judged))
    labels = {name: table.column(key) for name, keys in LABEL_KEYS.items() for key in keys if key in table.names}
    stated = first_words(table, (REDUCTION_KEY,))
    settings = table.column(CONFIG_KEY) if CONFIG_KEY in table.names else None
    phase = first_words(table, (targets.get("phase"), *PHASE_KEYS))
    held_out = np.zeros(table.rows, dtype=bool)
    if phase is not None:
        labels["phase"] = phase
        held_out = held_out_rows(phase)
        prefix_held_out_rows(columns, coverage, held_out)
    kept, notes = _rows_with_metrics(table, columns)
    notes += percentages
    if left_out:
        notes.append(f"{left_out} unrecognised keys that few rows have are left out: there are too many of them")
    steps, own, said = find_steps(table, targets.get("step"), kept)
    notes += said
    times = find_times(table, targets.get("wall_time"))
    named, said = find_runs(table, targets.get("run_id"), kept)
    notes += said
    if "epoch" in columns:
        notes += count_over_epochs(steps, own, columns["epoch"], [rows for _, rows in named])
    shapes = table.shapes * 2 + held_out.astype(np.int32)
    runs = []
    for name, rows in named:
        split = split_runs(steps[rows], shapes[rows])
        for number, chosen in enumerate(split.runs):
            run_id = name or _stem(path)
            if len(split.runs) > 1:
                run_id = f"{run_id}#{number + 1}"
            picked = rows[chosen]
            take = _taker(picked, table.rows)
            run = Run(
                run_id, path, adapter, framework, steps[picked], times[picked],
                {key: take(column) for key, column in columns.items()},
                _coverage_of(coverage, None if stated is None else take(stated)),
                {key: take(column) for key, column in labels.items()}, [*notes, *split.notes],
                _config_of(None if settings is None else take(settings)),
            )  # fmt: skip
            run = merge_rows_of_a_step(run)
            _drop_empty(run)
            runs.append(run)
    return runs


def _coverage_of(coverage: Coverage, stated: Column | None) -> Coverage:
    """The coverage of one run; its own events may say over what the KL was reduced."""
    own = replace(coverage, reductions=dict(coverage.reductions))
    if stated is not None and stated.codes is not None and (stated.codes >= 0).any():
        word = stated.words[stated.codes[stated.codes >= 0][-1]]
        for name in ("kl_mean", "eval_kl_mean"):
            if name in own.reductions and word in REDUCTIONS:
                own.reductions[name] = word
    return own


def _config_of(settings: Column | None) -> RunConfig:
    """The settings that the events of one run hold; those of its last start, where it was resumed."""
    if settings is None or settings.codes is None or not (settings.codes >= 0).any():
        return RunConfig()
    found = loads(settings.words[settings.codes[settings.codes >= 0][-1]].encode("utf-8", "replace"))
    return RunConfig.of(found, "the event log") if isinstance(found, dict) else RunConfig()


def _taker(picked: Rows, rows: int) -> Callable[[Column], Column]:
    """How a run's rows are taken from the table; all of them in order need no copy."""
    if len(picked) == rows and bool((np.diff(picked) == 1).all()):
        return lambda column: column
    return lambda column: column.take(picked)


_SUFFIXES = frozenset({
    ".json", ".jsonl", ".ndjson", ".log", ".txt", ".out", ".csv", ".tsv", ".parquet", ".gz", ".zst", ".db", ".wandb", ".ipynb",
    ".md", ".html",
})  # fmt: skip
_COMMON = frozenset({
    "metrics", "trainer_state", "events", "log", "train", "logging", "progress", "trajectory", "history", "output", "trainer_log",
})  # fmt: skip


def _stem(path: Path) -> str:
    """A run's name by its file: the file's, or its folder's where the file has a name that all runs' files have."""
    stem = path.name
    while (suffix := Path(stem).suffix) in _SUFFIXES:
        stem = stem.removesuffix(suffix)
    return path.absolute().parent.name or stem if stem in _COMMON or stem.startswith("events.out.tfevents") else stem


def _rows_with_metrics(table: Table, columns: Mapping[str, Column]) -> tuple[Rows, list[str]]:
    """The rows that measure something; what a trainer writes once at the end is not a step."""
    measured = np.zeros(table.rows, dtype=bool)
    for name, column in columns.items():
        if name not in POSITIONS:
            measured |= (column.state == NUMBER) | (column.state == NULL)
    summary = np.zeros(table.rows, dtype=bool)
    for name in SUMMARY_KEYS.intersection(table.names):
        summary |= table.column(name).state == NUMBER
    for name, column in columns.items():
        if (entry := CATALOG.get(name)) is not None and entry.group in _OF_A_STEP:
            summary &= column.state == ABSENT
    notes = []
    if summary.any():
        notes.append(f"{counted(int(summary.sum()), 'summary row')} of the whole run left out")
    bare = ~measured & ~summary
    if bare.any() and measured.any():
        notes.append(f"{counted(int(bare.sum()), 'row')} without a metric left out")
    return np.flatnonzero(measured & ~summary).astype(np.intp), notes


def _drop_empty(run: Run) -> None:
    """A run keeps the columns it logged; other runs of the file may have had more."""
    run.columns = {name: column for name, column in run.columns.items() if (column.state != ABSENT).any()}
    run.coverage.metrics = {name: key for name, key in run.coverage.metrics.items() if name in run.columns}
    run.coverage.reductions = {name: per for name, per in run.coverage.reductions.items() if name in run.columns}
    run.coverage.unmapped = [name for name in run.coverage.unmapped if name in run.columns]
    run.coverage.guessed = [key for key in run.coverage.guessed if key in run.coverage.metrics.values()]
    run.coverage.not_judged = [name for name in run.coverage.not_judged if name in run.columns]
