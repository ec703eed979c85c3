"""The monitors that a set of callbacks needs: one for each folder and run id, with every file written once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rldk.integrations.trl.checkpoints import CheckpointSummary, LiveFacts
from rldk.integrations.trl.options import CallbackOptions, merged
from rldk.monitor import Monitor
from rldk.monitor.outputs import Analysis, AnalysisCsv, EventLog, Output, Terminal, tracker_outputs, writers_of
from rldk.monitor.run_files import file_of, new_run_id
from rldk.monitor.runner import key_of

__all__ = ["build_monitors"]


def build_monitors(
    members: Sequence[Any], args: Any, resume_step: int | None, main: bool, settings: Mapping[str, Any], live: LiveFacts
) -> list[tuple[Any, Monitor]]:
    """Each callback with its monitor. Callbacks with the same folder share one, unless they name different runs.

    `live` returns facts about the training that are recorded with each checkpoint.
    """
    groups: dict[tuple[Path | None, str | None], list[Any]] = {}
    for member in sorted(members, key=lambda one: (one.options.output_dir is None, one.options.run_id is None)):
        groups.setdefault(_group_of(member.options, list(groups)), []).append(member)
    found: list[tuple[Any, Monitor]] = []
    for own in groups.values():
        ordered = [member for member in members if any(member is one for one in own)]
        monitor = _monitor([member.options for member in ordered], args, resume_step, main, settings, live)
        found += [(member, monitor) for member in ordered]
    return found


def _group_of(options: CallbackOptions, known: list[tuple[Path | None, str | None]]) -> tuple[Path | None, str | None]:
    """The group of a callback: its folder and run; a callback that does not name them joins the first group that fits."""
    folder = None if options.output_dir is None else options.output_dir.absolute()
    for group in known:
        if folder in (None, group[0]) and options.run_id in (None, group[1]):
            return group
    return folder, options.run_id


def _monitor(
    every: list[CallbackOptions], args: Any, resume_step: int | None, main: bool, settings: Mapping[str, Any], live: LiveFacts
) -> Monitor:
    options = merged(every)
    own = {"min_scores": options.min_scores, "max_risks": options.max_risks, "stop_on": options.stop_on}
    settings = {**settings, "rldk": {name: value for name, value in own.items() if value}}
    run_id = options.run_id or new_run_id("trl")
    unique: dict[str, Output] = {}
    outputs = (*_logs(every, options, run_id, resume_step), *_outputs(options, run_id, args, live))
    for output in (*outputs, *tracker_outputs(options.report_to), *options.outputs):
        unique.setdefault(key_of(output), output)
    return Monitor(
        options.output_dir, run_id, config=options.config, forensics=options.forensics, limits=options.limits,
        run_config=settings, stop_on=options.stop_on, confirm=options.confirm, dry_run=options.dry_run,
        outputs=unique.values(), actions=options.actions, resume_step=resume_step,
        main_process=main, strict=options.strict,
    )  # fmt: skip


def _logs(every: list[CallbackOptions], options: CallbackOptions, run_id: str, resume_step: int | None) -> list[EventLog]:
    """The event logs, each path once; a resumed run is judged from the first."""
    paths = []
    for one in every:
        if one.event_log_path is not None:
            paths.append(one.event_log_path)
        elif "events" in one.files and one.output_dir is not None:
            paths.append(file_of(one.output_dir, run_id, "events.jsonl"))
    distinct = {path.absolute(): path for path in paths}
    return [EventLog(path, resume_step, options.jsonl_interval) for path in distinct.values()]


def _outputs(options: CallbackOptions, run_id: str, args: Any, live: LiveFacts) -> list[Output]:
    found: list[Output] = [Terminal(every=options.log_interval)] if options.terminal else []
    folder = options.output_dir
    if folder is None:
        return found
    found += writers_of(folder, run_id, options.files, options.columns)
    if "analysis" in options.files:
        found.append(AnalysisCsv(file_of(folder, run_id, "comprehensive_metrics.csv")))
        found.append(Analysis(folder))
    if "checkpoints" in options.files:
        found.append(CheckpointSummary(folder, args.output_dir, live))
    return found
