"""The scan of a finished run: which rules fired, and over which steps."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from math import isfinite, nan
from statistics import median
from typing import Any

import numpy as np

from rldk.core.event import Event
from rldk.core.files import strict
from rldk.core.stats.slope import least_squares
from rldk.judge.engine import Engine
from rldk.runs.canonical import read_events

__all__ = ["scan", "scan_ppo_events"]

VERSION = "1"
CLEAR_TREND = 2.0
FEW = 10


def scan_ppo_events(events: Iterable[Event | Mapping[str, Any]]) -> dict[str, Any]:
    """Scan the events of a run: `version`, `rules_fired`, `earliest_step` and `stats`, as strict JSON.

    Args:
        events: any iterable, also one that can be read only once, of `Event` objects, of their dictionaries, or of flat
            rows with any framework's keys.
    """
    engine = Engine()
    return scan(events, engine, engine.observe)


def scan(events: Iterable[Event | Mapping[str, Any]], engine: Engine, observe: Callable[[Event], object]) -> dict[str, Any]:
    """Pass all events to `observe`, which passes them to `engine`, and return what fired.

    A rule's `step_range` is from the step at which its condition began to the last before it was gone, or of the run.
    """
    steps = array("q")
    kls, ratios, entropies = array("d"), array("d"), array("d")
    for event in read_events(events):
        observe(event)
        steps.append(max(-(1 << 63), min(event.step, (1 << 63) - 1)))
        metrics = event.metrics
        known = (kls, metrics.get("kl_mean", nan)), (ratios, _ratio(metrics)), (entropies, metrics.get("entropy_mean", nan))
        for values, value in known:
            if isfinite(value):
                values.append(value)
    stats: dict[str, Any] = {"events": len(steps)} if steps else {}
    if kls:
        stats["kl_median"] = median(kls)
    if ratios:
        stats["grad_ratio_median"] = median(ratios)
    if len(entropies) >= FEW:
        stats["entropy_trend"] = _trend(entropies)
    fired = [
        {
            "rule": anomaly.type,
            "description": anomaly.message,
            "step_range": [steps[max(anomaly.since, 0)], steps[_last(anomaly.cleared_index, len(steps))]],
            "severity": anomaly.severity,
            "tracker": anomaly.family,
        }
        for anomaly in engine.anomalies
    ]
    found = {"version": VERSION, "rules_fired": fired, "earliest_step": min(steps, default=None), "stats": stats}
    return strict(found)  # type: ignore[no-any-return]


def _ratio(metrics: Mapping[str, float]) -> float:
    policy, value = metrics.get("policy_grad_norm", nan), metrics.get("value_grad_norm", nan)
    return policy / value if policy > 0.0 and value > 0.0 else nan


def _last(cleared: int | None, count: int) -> int:
    return count - 1 if cleared is None else max(cleared - 1, 0)


def _trend(values: array[float]) -> str:
    """`increasing` or `decreasing` where the slope over all values is more than twice its standard error, else `stable`."""
    steps = np.arange(len(values)) - (len(values) - 1) / 2.0
    with np.errstate(all="ignore"):
        away = np.asarray(values) - np.mean(values)
        _, t = least_squares(len(values), float(steps @ steps), float(steps @ away), float(away @ away))
    if not abs(t) > CLEAR_TREND:
        return "stable"
    return "increasing" if t > 0.0 else "decreasing"
