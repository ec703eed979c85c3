"""The options of a callback, and how those of several callbacks of one trainer are merged."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from rldk.core.anomaly import SEVERITIES
from rldk.core.catalog import locate
from rldk.core.errors import UsageError
from rldk.detectors.run.user_limit import KL_UNITS
from rldk.judge.config import ScanConfig
from rldk.monitor.live_judge import build_forensics
from rldk.monitor.outputs import Output, tracker_outputs
from rldk.monitor.run_files import check_run_id
from rldk.monitor.stopping import Stopper

__all__ = ["SCORES", "CallbackOptions", "as_path", "merged", "split_thresholds", "stricter"]

SCORES = {
    "stability": "training_stability",
    "training_stability": "training_stability",
    "health": "overall_health",
    "overall_health": "overall_health",
    "convergence_quality": "convergence_quality",
}
"""Thresholds that are the minimum of a score, not the maximum of a metric."""

RISKS = ("collapse_risk", "hacking_risk")
"""Thresholds that are the maximum of a risk."""


@dataclass(slots=True)
class CallbackOptions:
    """The options of one callback. Invalid ones raise an error here, before any training."""

    output_dir: Path | None = None
    run_id: str | None = None
    event_log_path: Path | None = None
    files: frozenset[str] = frozenset()
    limits: dict[str, Any] = field(default_factory=dict)
    min_scores: dict[str, float] = field(default_factory=dict)
    max_risks: dict[str, float] = field(default_factory=dict)
    forensics: dict[str, Any] = field(default_factory=dict)
    config: ScanConfig | Mapping[str, Any] | None = None
    columns: tuple[str, ...] = ()
    stop_on: str | None = None
    confirm: int = 0
    dry_run: bool = False
    log_interval: int = 10
    jsonl_interval: int = 1
    terminal: bool = False
    report_to: tuple[str, ...] = ()
    actions: tuple[Output, ...] = ()
    outputs: tuple[Output, ...] = ()
    resources: bool = False
    samples: int = 0
    skip_nonfinite: bool = False
    gradient_flow: bool = False
    strict: bool = False

    def __post_init__(self) -> None:
        if self.run_id is not None:
            check_run_id(self.run_id)
        for name in ("log_interval", "jsonl_interval"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise UsageError(f"Expected `{name}` to be a whole number of at least 1, got {value!r}.")
        Stopper(self.stop_on, self.confirm, self.dry_run)
        build_forensics(self.config, self.forensics, self.limits)
        tracker_outputs(self.report_to)


def split_thresholds(given: Mapping[str, Any] | None) -> tuple[dict[str, Any], dict[str, float], dict[str, float]]:
    """A user's thresholds: limits of metrics, minimum scores, and maximum risks."""
    asked = dict(given or {})
    scores = {SCORES[name]: float(asked.pop(name)) for name in list(asked) if name in SCORES}
    risks = {name: float(asked.pop(name)) for name in RISKS if name in asked}
    limits: dict[str, Any] = {}
    for name, bound in asked.items():
        place = None if name in KL_UNITS else locate(name, "rldk")
        limits = stricter(limits, {name if place is None else place.metric: bound})
    return limits, scores, risks


def stricter(ours: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two sets of limits: where both limit a metric, the lower `max` and the higher `min` count."""
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


def merged(every: Iterable[CallbackOptions]) -> CallbackOptions:
    """The options of several callbacks as one: all files and limits, the strictest stop, the shortest intervals."""
    given = list(every)
    made = {one.name: getattr(given[0], one.name) for one in fields(CallbackOptions)}
    for other in given[1:]:
        for name in ("output_dir", "run_id", "event_log_path"):
            made[name] = made[name] or getattr(other, name)
        made["config"] = made["config"] if made["config"] is not None else other.config
        made["files"] |= other.files
        made["limits"] = stricter(made["limits"], other.limits)
        for name in ("min_scores", "max_risks", "forensics"):
            made[name] = {**made[name], **getattr(other, name)}
        for name in ("columns", "report_to", "actions", "outputs"):
            made[name] = tuple(dict.fromkeys((*made[name], *getattr(other, name))))
        for name in ("log_interval", "jsonl_interval"):
            made[name] = min(made[name], getattr(other, name))
        for name in ("terminal", "resources", "skip_nonfinite", "gradient_flow", "strict"):
            made[name] = made[name] or getattr(other, name)
        made["samples"] = max(made["samples"], other.samples)
    return CallbackOptions(**{**made, **_soonest_stop(given)})


def _soonest_stop(every: Iterable[CallbackOptions]) -> dict[str, Any]:
    """The strictest stop; one that ends the run takes precedence over a dry run."""
    asked = [(one.dry_run, SEVERITIES.index(one.stop_on), one.confirm) for one in every if one.stop_on is not None]
    if not asked:
        return {}
    dry_run, severity, confirm = min(asked)
    return {"stop_on": SEVERITIES[severity], "confirm": confirm, "dry_run": dry_run}


def as_path(path: str | os.PathLike[str] | None) -> Path | None:
    """A path, with `~` expanded."""
    return None if path is None else Path(path).expanduser()
