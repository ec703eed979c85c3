"""Anomalies that belong together become one incident: what moved first, the probable cause and its rivals, what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from rldk.core.anomaly import Anomaly
from rldk.core.text import in_words
from rldk.core.verdicts import VERDICTS, worst_of
from rldk.detectors.run.user_limit import limited_metric
from rldk.judge.incidents.advice import Setup, advice_for, title_for
from rldk.judge.incidents.causes import CAUSES, Cause
from rldk.judge.incidents.grouping import Group, group_anomalies

__all__ = ["Incident", "anomaly_dicts", "group_incidents", "worst_incident"]

_FIRST_BONUS = 1.5
_SOON = 35  # rows after the first critical in which anomalies still speak for a cause
_NEVER_BETTER = frozenset({"plateau"})


@dataclass(slots=True)
class Incident:
    """One thing that went wrong, with all the anomalies that belong to it.

    `anomalies` are positions in the run's list of anomalies. `evidence` lists what was seen, in order: the signs of the
    cause first, then what followed; `rivals` are the other causes that would explain it, the most likely first.
    `recovered_step` is the step at which the last of its anomalies cleared, `None` while one stands.
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
    recovered_step: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The incident as reports and other tools read it."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def worst_incident(incidents: Sequence[Incident]) -> Incident | None:
    """The incident to read first: critical before warning, then one that stands before one that is over, then the earliest."""

    def rank(incident: Incident) -> tuple[int, bool, int]:
        return VERDICTS.index(incident.severity), incident.recovered_step is not None, incident.index

    return min(incidents, key=rank, default=None)


def group_incidents(
    anomalies: Sequence[Anomaly],
    events: int,
    cleared_steps: Mapping[int, int] | None = None,
    setup: Setup | None = None,
) -> list[Incident]:
    """Group anomalies that were raised near each other in time, or while a related earlier one stood.

    `cleared_steps` has the step of each event at which something cleared, as the engine keeps it; `setup` what is known about the
    run besides its log, so that advice can name the user's own settings.
    """
    groups = group_anomalies(anomalies, events)
    return [_incident(group, anomalies, cleared_steps or {}, setup or Setup()) for group in groups]


def anomaly_dicts(anomalies: Sequence[Anomaly], incidents: Sequence[Incident]) -> list[dict[str, Any]]:
    """Anomalies as reports hold them; of all that belong to one incident, the last good step is that of the incident."""
    found = [anomaly.to_dict() for anomaly in anomalies]
    for incident in incidents:
        for number in incident.anomalies:
            found[number]["last_good_step"] = incident.last_good_step
    return found


def _incident(group: Group, anomalies: Sequence[Anomaly], cleared_steps: Mapping[int, int], setup: Setup) -> Incident:
    numbers = [*group.core, *group.late]
    members = [anomalies[number] for number in numbers]
    core = members[: len(group.core)]
    first = min(core, key=lambda anomaly: (anomaly.since, anomaly.index))
    head = core[0]
    ranked = _rank(_until_critical(core), first)
    cause = ranked[0] if ranked else None
    good = _last_good_step(core)
    return Incident(
        cause.name if cause else first.type,
        title_for(cause, setup) if cause else in_words(first.type),
        worst_of(anomaly.severity for anomaly in members),
        head.step,
        head.index,
        numbers,
        first.type,
        _evidence(members),
        [rival.name for rival in ranked[1:4]],
        advice_for(cause, first, good, setup) if cause else _own_advice(first, members),
        good,
        _recovered_step(members, cleared_steps),
    )


def _own_advice(first: Anomaly, members: Sequence[Anomaly]) -> str:
    """The advice of what moved first, or of each of several limits of the user."""
    limits = [anomaly.advice for anomaly in members if limited_metric(first) and limited_metric(anomaly)]
    return " ".join(dict.fromkeys((first.advice, *limits)))


def _recovered_step(members: Sequence[Anomaly], cleared_steps: Mapping[int, int]) -> int | None:
    """The step at which the last of them cleared; `None` while one stands."""
    ends = [anomaly.cleared_index for anomaly in members if anomaly.cleared_index is not None]
    return cleared_steps.get(max(ends)) if ends and len(ends) == len(members) else None


def _last_good_step(core: Sequence[Anomaly]) -> int | None:
    """The step before any of them started. A plateau has none; other anomalies have one, unless they came after the plateau."""
    if core[0].type in _NEVER_BETTER or any(anomaly.evidence.get("rows", 0.0) > anomaly.index for anomaly in core):
        return None  # or it has held for as many rows as there are
    good = [anomaly.last_good_step for anomaly in core if anomaly.type not in _NEVER_BETTER]
    known = [step for step in good if step is not None]
    return min(known) if len(known) == len(good) else None


def _rank(members: Sequence[Anomaly], first: Anomaly) -> list[Cause]:
    """The causes that fit, by the weight of their anomalies; the first to appear counts more."""
    clauses: dict[str, set[str]] = {}
    for anomaly in members:
        clauses.setdefault(anomaly.type, set()).add(anomaly.clause)
    said = {*clauses, *(f"{kind}.{clause}" for kind, names in clauses.items() for clause in names)}
    weights = []
    for position, cause in enumerate(CAUSES):
        if cause.needs and said.isdisjoint(cause.needs):
            continue
        weight = sum(_weight(cause, kind, names) for kind, names in clauses.items())
        weight += (_FIRST_BONUS - 1.0) * _weight(cause, first.type, {first.clause})
        if weight > 0:
            weights.append((-weight, position, cause))
    return [cause for _, _, cause in sorted(weights, key=lambda row: row[:2])]


def _until_critical(core: Sequence[Anomaly]) -> list[Anomaly]:
    """What was raised until the incident was critical, and soon after: what comes later follows from it."""
    critical = min((anomaly.index for anomaly in core if anomaly.severity == "critical"), default=inf)
    return [anomaly for anomaly in core if anomaly.index <= critical + _SOON]


def _weight(cause: Cause, kind: str, clauses: set[str]) -> float:
    """The weight of a type of anomaly for a cause: by its clauses if the cause names them, else by the type."""
    whole = cause.signs.get(kind, 0.0)
    return max((cause.signs.get(f"{kind}.{clause}", whole) for clause in clauses), key=abs, default=whole)


def _evidence(members: Sequence[Anomaly]) -> list[str]:
    """One sentence per type and limit, in their order; for a warning that grew, the worst one and when it started."""
    first: dict[tuple[str, str], Anomaly] = {}
    worst: dict[tuple[str, str], Anomaly] = {}
    for anomaly in members:
        kind = anomaly.type, limited_metric(anomaly)
        first.setdefault(kind, anomaly)
        if kind not in worst or anomaly.severity == "critical" != worst[kind].severity:
            worst[kind] = anomaly
    return [
        f"step {first[kind].step}{'' if anomaly is first[kind] else f', critical at {anomaly.step}'}: {anomaly.message}"
        for kind, anomaly in worst.items()
    ]
