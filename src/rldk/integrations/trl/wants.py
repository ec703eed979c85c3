"""What a callback asks of the monitor, and how several that watch one trainer are put together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from rldk.core.anomaly import SEVERITIES
from rldk.core.catalog import locate
from rldk.core.errors import UsageError
from rldk.judge.config import ScanConfig
from rldk.monitor.actions import Action
from rldk.monitor.naming import check_run_id
from rldk.monitor.settings import build_forensics
from rldk.monitor.sinks import Sink, mirror
from rldk.monitor.stopping import Stopper

__all__ = ["SCORES", "Wants", "as_path", "merged", "split_thresholds", "stricter"]

SCORES = {
    "stability": "training_stability",
    "training_stability": "training_stability",
    "health": "overall_health",
    "overall_health": "overall_health",
    "convergence_quality": "convergence_quality",
}
"""Thresholds that are the least a score may be, and not the most that a metric may be."""


@dataclass(slots=True)
class Wants:
    """What one callback asks for. Everything that cannot be is said when it is made, before any training."""

    output_dir: Path | None = None
    run_id: str | None = None
    event_log_path: Path | None = None
    files: frozenset[str] = frozenset()
    limits: dict[str, Any] = field(default_factory=dict)
    least_scores: dict[str, float] = field(default_factory=dict)
    forensics: dict[str, Any] = field(default_factory=dict)
    config: ScanConfig | Mapping[str, Any] | None = None
    columns: tuple[str, ...] = ()
    stop_on: str | None = None
    confirm: int = 0
    dry_run: bool = False
    csv_interval: int = 1
    log_interval: int = 10
    jsonl_interval: int = 1
    terminal: bool = False
    report_to: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()
    sinks: tuple[Sink, ...] = ()
    resources: bool = False
    samples: int = 0
    skip_nonfinite: bool = False
    strict: bool = False

    def __post_init__(self) -> None:
        if self.run_id is not None:
            check_run_id(self.run_id)
        for name in ("csv_interval", "log_interval", "jsonl_interval"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise UsageError(f"Expected `{name}` to be a whole number of at least 1, got {value!r}.")
        Stopper(self.stop_on, self.confirm, self.dry_run)
        build_forensics(self.config, self.forensics, self.limits)
        mirror(self.report_to)


def split_thresholds(given: Mapping[str, Any] | None) -> tuple[dict[str, Any], dict[str, float]]:
    """A user's thresholds: limits of metrics, and the least that scores may be."""
    asked = dict(given or {})
    scores = {SCORES[name]: float(asked.pop(name)) for name in list(asked) if name in SCORES}
    limits: dict[str, Any] = {}
    for name, bound in asked.items():
        place = locate(name, "rldk")
        limits = stricter(limits, {name if place is None else place.metric: bound})
    return limits, scores


def stricter(ours: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Limits from two sides: where both limit a metric, the lower `max` and the higher `min` count."""
    made = dict(ours)
    for name, bound in others.items():
        new = dict(bound) if isinstance(bound, Mapping) else {"max": bound}
        if name in made:
            old = dict(made[name]) if isinstance(made[name], Mapping) else {"max": made[name]}
            for side, choose in (("max", min), ("min", max)):
                if side in old and side in new:
                    new[side] = choose(old[side], new[side])
            new = {**old, **new}
        made[name] = new
    return made


def merged(every: Iterable[Wants]) -> Wants:
    """Several callbacks as one: all files and limits, the strictest stop, the shortest intervals."""
    wants = list(every)
    first = wants[0]
    made = {one.name: getattr(first, one.name) for one in fields(Wants)}
    for other in wants[1:]:
        made["output_dir"] = made["output_dir"] or other.output_dir
        made["run_id"] = made["run_id"] or other.run_id
        made["event_log_path"] = made["event_log_path"] or other.event_log_path
        made["config"] = made["config"] if made["config"] is not None else other.config
        made["files"] |= other.files
        made["limits"] = stricter(made["limits"], other.limits)
        for name in ("least_scores", "forensics"):
            made[name] = {**made[name], **getattr(other, name)}
        for name in ("columns", "report_to", "actions", "sinks"):
            made[name] = tuple(dict.fromkeys((*made[name], *getattr(other, name))))
        for name in ("csv_interval", "log_interval", "jsonl_interval"):
            made[name] = min(made[name], getattr(other, name))
        for name in ("terminal", "resources", "skip_nonfinite", "strict"):
            made[name] = made[name] or getattr(other, name)
        made["samples"] = max(made["samples"], other.samples)
        made |= _stop(made, other)
    return Wants(**made)


def _stop(made: Mapping[str, Any], other: Wants) -> dict[str, Any]:
    """The sooner stop of two; one that is to be obeyed goes before one that is only recorded."""
    asked = [(one["stop_on"], one["confirm"], one["dry_run"]) for one in (made, vars_of(other)) if one["stop_on"] is not None]
    if not asked:
        return {}
    stop_on, confirm, dry_run = min(asked, key=lambda one: (one[2], SEVERITIES.index(one[0]), one[1]))
    return {"stop_on": stop_on, "confirm": confirm, "dry_run": dry_run}


def vars_of(wants: Wants) -> dict[str, Any]:
    return {"stop_on": wants.stop_on, "confirm": wants.confirm, "dry_run": wants.dry_run}


def as_path(path: str | os.PathLike[str] | None) -> Path | None:
    """A path, with the home folder in it where it says so."""
    return None if path is None else Path(path).expanduser()
