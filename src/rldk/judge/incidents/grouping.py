"""Which anomalies belong together: those near in time, and those that follow while an earlier incident still stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rldk.core.anomaly import Anomaly
from rldk.judge.incidents.causes import CAUSES

__all__ = ["Group", "group_anomalies"]

_GAP_ROWS = 30
_GAP_SHARE = 0.1
_APART = frozenset({"nonfinite_metric", "throughput_drop", "memory_pressure", "step_regression", "user_limit_exceeded"})
"""Types of anomaly that are an incident of their own even in a broken run, since no collapse causes them."""
_LEFT_OVER = frozenset({"plateau", "vanishing_gradient_anomaly", "gradient_flow_anomaly", "dead_reward"})
"""Types of anomaly that belong to the incident of a broken run, even if its first alarm has cleared."""


@dataclass(slots=True)
class Group:
    """The anomalies of one incident, by their position in the run's list.

    `core` are those near each other in time, which determine the cause, and `late` those that followed from them.
    """

    core: list[int] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    core_end: int = -1
    late_end: int = -1


def group_anomalies(anomalies: Sequence[Anomaly], events: int) -> list[Group]:
    """Group anomalies that started near each other in time, or while a related one stood."""
    order = sorted(range(len(anomalies)), key=lambda number: (anomalies[number].index, number))
    gap = max(_GAP_ROWS, _GAP_SHARE * events)
    groups: list[Group] = []
    for number in order:
        anomaly = anomalies[number]
        last = groups[-1] if groups else None
        if last is not None and anomaly.since - last.core_end <= gap:
            last.core.append(number)
            last.core_end = anomaly.index
            continue
        for group in reversed(groups):
            if (group.late and anomaly.since - group.late_end <= gap) or _follows(anomaly, group, anomalies):
                group.late.append(number)
                group.late_end = anomaly.index
                break
        else:
            groups.append(Group([number], core_end=anomaly.index))
    return groups


def _follows(anomaly: Anomaly, group: Group, anomalies: Sequence[Anomaly]) -> bool:
    """Whether an anomaly is a consequence of an incident.

    After a critical incident these are the typical consequences; while a critical one stands, everything that follows; and
    while any incident stands, the same defect again, or a warning that shares a cause with it.
    """
    broken = any(anomalies[number].severity == "critical" and anomalies[number].type not in _APART for number in group.core)
    if broken and anomaly.type in _LEFT_OVER:
        return True
    standing = [anomalies[number] for number in (*group.core, *group.late) if _stands(anomalies[number], anomaly.since)]
    if any(other.type == anomaly.type for other in standing):
        return True
    if anomaly.type in _APART:
        return False
    if any(other.severity == "critical" and other.type not in _APART for other in standing):
        return True
    return anomaly.severity == "warning" and any(_share_a_cause(anomaly.type, other.type) for other in standing)


def _stands(anomaly: Anomaly, index: int) -> bool:
    return anomaly.cleared_index is None or anomaly.cleared_index >= index


def _share_a_cause(one: str, other: str) -> bool:
    return any(cause.signs.get(one, 0.0) > 0.0 and cause.signs.get(other, 0.0) > 0.0 for cause in CAUSES)
