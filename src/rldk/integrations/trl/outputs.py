"""Which monitors a set of callbacks needs: one for each folder and run id, with every file written once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rldk.integrations.trl.checkpoints import Checkpoints
from rldk.integrations.trl.wants import Wants, merged
from rldk.monitor import Monitor
from rldk.monitor.naming import file_of, new_run_id
from rldk.monitor.sinks import Alerts, Analysis, ConfigFile, EventLog, FinalReport, MetricsCsv, Sink, Terminal, mirror

__all__ = ["build_monitors"]


def build_monitors(
    members: Sequence[Any], args: Any, resume_step: int | None, main: bool, settings: Mapping[str, Any]
) -> list[tuple[Any, Monitor]]:
    """Each callback with its monitor. Callbacks with the same folder share one, unless they name different runs."""
    groups: dict[tuple[Path | None, str | None], list[Any]] = {}
    for member in sorted(members, key=lambda one: (one.wants.output_dir is None, one.wants.run_id is None)):
        groups.setdefault(_group_of(member.wants, list(groups)), []).append(member)
    found: list[tuple[Any, Monitor]] = []
    for own in groups.values():
        ordered = [member for member in members if any(member is one for one in own)]
        monitor = _monitor([member.wants for member in ordered], args, resume_step, main, settings)
        found += [(member, monitor) for member in ordered]
    return found


def _group_of(wants: Wants, known: list[tuple[Path | None, str | None]]) -> tuple[Path | None, str | None]:
    """The group of a callback: a folder and a run; one that does not name them joins the first that fits."""
    folder = None if wants.output_dir is None else wants.output_dir.absolute()
    for group in known:
        if folder in (None, group[0]) and wants.run_id in (None, group[1]):
            return group
    return folder, wants.run_id


def _monitor(every: list[Wants], args: Any, resume_step: int | None, main: bool, settings: Mapping[str, Any]) -> Monitor:
    wants = merged(every)
    told = {"min_scores": wants.least_scores, "stop_on": wants.stop_on}
    settings = {**settings, "rldk": {name: value for name, value in told.items() if value}}
    run_id = wants.run_id or new_run_id("trl")
    monitor = Monitor(
        wants.output_dir, run_id, config=wants.config, forensics=wants.forensics, limits=wants.limits,
        run_config=settings, stop_on=wants.stop_on, confirm=wants.confirm, dry_run=wants.dry_run,
        actions=wants.actions, sinks=[], resume_step=resume_step,
        main_process=main, strict=wants.strict,
    )  # fmt: skip
    logs = _logs(every, wants, run_id, resume_step)
    monitor.log = logs[0] if logs else None
    unique: dict[str, Sink] = {}
    for sink in (*logs[1:], *_sinks(wants, run_id, args), *mirror(wants.report_to), *wants.sinks):
        unique.setdefault(sink.key, sink)
    monitor.sinks = list(unique.values())
    return monitor


def _logs(every: list[Wants], wants: Wants, run_id: str, resume_step: int | None) -> list[EventLog]:
    """The event logs, each path once; the first is written before an event is judged."""
    paths = []
    for one in every:
        if one.event_log_path is not None:
            paths.append(one.event_log_path)
        elif "events" in one.files and one.output_dir is not None:
            paths.append(file_of(one.output_dir, run_id, "events.jsonl"))
    distinct = {path.absolute(): path for path in paths}
    return [EventLog(path, resume_step, wants.jsonl_interval) for path in distinct.values()]


def _sinks(wants: Wants, run_id: str, args: Any) -> list[Sink]:
    found: list[Sink] = [Terminal(every=wants.log_interval)] if wants.terminal else []
    folder = wants.output_dir
    if folder is None:
        return found
    if "metrics" in wants.files:
        found.append(MetricsCsv(file_of(folder, run_id, "metrics.csv"), wants.columns))
    if "alerts" in wants.files:
        found.append(Alerts(file_of(folder, run_id, "alerts.json")))
    if "analysis" in wants.files:
        found.append(MetricsCsv(file_of(folder, run_id, "comprehensive_metrics.csv")))
        found.append(Analysis(folder))
    if "checkpoints" in wants.files:
        found.append(Checkpoints(folder, args.output_dir))
    if "final_report" in wants.files:
        found.append(FinalReport(file_of(folder, run_id, "final_report.json")))
        found.append(ConfigFile(file_of(folder, run_id, "config.json")))
    return found
