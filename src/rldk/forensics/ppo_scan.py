"""The scan of a finished run: which rules fired, and over which steps."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from math import nan
from statistics import median
from typing import Any

from rldk.core.event import Event
from rldk.core.files import strict
from rldk.core.stats.moments import RunningMoments
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
    kls, ratios, entropy = array("d"), array("d"), Slope()
    for event in read_events(events):
        observe(event)
        steps.append(max(-(1 << 63), min(event.step, (1 << 63) - 1)))
        metrics = event.metrics
        kl = metrics.get("kl_mean")
        if kl is not None and kl - kl == 0.0:
            kls.append(kl)
        ratio = _ratio(metrics)
        if ratio - ratio == 0.0:
            ratios.append(ratio)
        if "entropy_mean" in metrics:
            entropy.update(metrics["entropy_mean"])
    stats: dict[str, Any] = {"events": len(steps)} if steps else {}
    if kls:
        stats["kl_median"] = median(kls)
    if ratios:
        stats["grad_ratio_median"] = median(ratios)
    if entropy.count >= FEW:
        stats["entropy_trend"] = entropy.direction
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


class Slope(RunningMoments):
    """Whether a series rises or falls over all of its values."""

    __slots__ = ("_sxy",)
    _sxy: float

    def reset(self) -> None:
        super().reset()
        self._sxy = 0.0

    def _add(self, value: float) -> None:
        before = self._mean
        super()._add(value)
        self._sxy += 0.5 * (self.count - 1) * (value - before)

    @property
    def direction(self) -> str:
        """`increasing` or `decreasing` where the slope is more than twice its standard error, else `stable`."""
        n = self.count
        sxx = n * (n * n - 1) / 12.0
        residual = self._m2 - self._sxy * self._sxy / sxx
        t2 = self._sxy * self._sxy / sxx * (n - 2)
        if not t2 > CLEAR_TREND**2 * max(residual, 0.0):
            return "stable"
        return "increasing" if self._sxy > 0.0 else "decreasing"
