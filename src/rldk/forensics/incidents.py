"""Anomalies that belong together become one incident: what moved first, the probable cause and its rivals, what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rldk.core.anomaly import Anomaly
from rldk.forensics.causes import CAUSES, Cause

__all__ = ["Incident", "group_incidents"]

_GAP_ROWS = 30
_GAP_SHARE = 0.1
_FIRST_BONUS = 1.5


@dataclass(slots=True)
class Incident:
    """One thing that went wrong, told by all the anomalies that speak of it.

    `anomalies` are positions in the run's list of anomalies. `evidence` says in sentences what was seen, the first mover
    first; `rivals` are the other causes that would explain it, the likelier first.
    """

    cause: str
    title: str
    severity: str
    step: int
    index: int
    anomalies: list[int]
    first: str
    evidence: list[str]
    rivals: list[str]
    advice: str
    last_good_step: int | None

    def to_dict(self) -> dict[str, Any]:
        """The incident as reports and other tools read it."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def group_incidents(anomalies: Sequence[Anomaly], events: int) -> list[Incident]:
    """Group anomalies that were raised near each other in time; far apart they are different incidents."""
    order = sorted(range(len(anomalies)), key=lambda number: (anomalies[number].index, number))
    gap = max(_GAP_ROWS, _GAP_SHARE * events)
    groups: list[list[int]] = []
    for number in order:
        if groups and anomalies[number].since - anomalies[groups[-1][-1]].index <= gap:
            groups[-1].append(number)
        else:
            groups.append([number])
    return [_incident(group, anomalies) for group in groups]


def _incident(group: list[int], anomalies: Sequence[Anomaly]) -> Incident:
    members = [anomalies[number] for number in group]
    first = min(members, key=lambda anomaly: (anomaly.since, anomaly.index))
    head = members[0]
    ranked = _rank(members, first)
    cause = ranked[0] if ranked else None
    good = [anomaly.last_good_step for anomaly in members]
    evidence = [f"step {anomaly.step}: {anomaly.message}" for anomaly in _one_of_each(members)]
    return Incident(
        cause.name if cause else first.type,
        cause.title if cause else first.type.replace("_", " "),
        "critical" if any(anomaly.severity == "critical" for anomaly in members) else "warning",
        head.step,
        head.index,
        group,
        first.type,
        evidence,
        [rival.name for rival in ranked[1:4]],
        _advice(cause, first.knobs) if cause else first.advice,
        None if None in good else min(step for step in good if step is not None),
    )


def _rank(members: Sequence[Anomaly], first: Anomaly) -> list[Cause]:
    """The causes that fit, by the weight of the anomalies that speak for them; the first mover counts for more."""
    types = {anomaly.type for anomaly in members}
    weights = []
    for position, cause in enumerate(CAUSES):
        if cause.needs and not types & set(cause.needs):
            continue
        weight = sum(cause.signs.get(kind, 0.0) for kind in types)
        weight += (_FIRST_BONUS - 1.0) * cause.signs.get(first.type, 0.0)
        if weight > 0:
            weights.append((-weight, position, cause))
    return [cause for _, _, cause in sorted(weights, key=lambda row: row[:2])]


def _one_of_each(members: Sequence[Anomaly]) -> list[Anomaly]:
    """The worst anomaly of each type, where it first stood: a warning that grew is told once."""
    worst: dict[str, Anomaly] = {}
    for anomaly in members:
        if anomaly.type not in worst or anomaly.severity == "critical" != worst[anomaly.type].severity:
            worst[anomaly.type] = anomaly
    return list(worst.values())


def _advice(cause: Cause, knobs: Mapping[str, float]) -> str:
    """The cause's advice with the run's numbers of that moment in it."""

    def then(*names: str) -> str:
        found = next((knobs[name] for name in names if name in knobs), None)
        return "not logged" if found is None else f"{found:.3g}"

    length = then("rollout_length_mean")
    return cause.advice.format(lr=then("policy_lr", "lr"), kl_coef=then("kl_coef"), kl=then("kl_mean"), length=length)
