"""An incident as every surface tells it: in words, as moments in their order, as marks, and by the panels that show it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from rldk.core.anomaly import Anomaly
from rldk.core.text import clean, in_words
from rldk.detectors.run.user_limit import limited_metric
from rldk.detectors.table import BY_TYPE
from rldk.judge.incidents.causes import TITLES
from rldk.judge.incidents.incident import Incident, worst_incident
from rldk.judge.result import Result
from rldk.present.plots.panel import Mark

__all__ = [
    "ALWAYS_SHOWN", "Moment", "accepted", "evidence_keys", "in_brief", "last_good", "marks_of", "may_also_be", "panels_showing",
    "recovered", "story", "subject", "worst_incident",
]  # fmt: skip

ALWAYS_SHOWN = ("reward", "kl", "losses")
"""The panels that are added where those of an incident are few."""

_NEXT_SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z])")

_SUBJECTS = {
    "kl_schedule": "KL", "gradient_norms": "gradients", "advantage_statistics": "advantages", "preference": "preferences",
    "run": "the run itself",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Moment:
    """One line of an incident's story: what was seen, at which step it began, and whether it moved first."""

    anomaly: Anomaly
    began: int
    first: bool


def story(incident: Incident, anomalies: Sequence[Anomaly], step_at: Callable[[int], int]) -> list[Moment]:
    """What was seen, in the order in which it began: of each type and limit the worst anomaly, since its first condition.

    `anomalies` are all those of the run, and `step_at` tells the step of its event of a number.
    """
    worst: dict[tuple[str, str], Anomaly] = {}
    since: dict[tuple[str, str], int] = {}
    for anomaly in (anomalies[number] for number in incident.anomalies):
        kind = anomaly.type, limited_metric(anomaly)
        known = worst.get(kind)
        if known is None or (anomaly.severity == "critical" and known.severity != "critical"):
            worst[kind] = anomaly
        since[kind] = min(since.get(kind, anomaly.since), anomaly.since)
    order = sorted(worst, key=lambda kind: (kind[0] != incident.first, since[kind], worst[kind].index))
    return [Moment(worst[kind], step_at(since[kind]), kind == order[0]) for kind in order]


def subject(incident: Incident) -> str:
    """What an incident is about: the family of what moved first, such as `KL`."""
    kind = BY_TYPE.get(incident.first)
    family = incident.first if kind is None else kind.family
    return _SUBJECTS.get(family, in_words(family))


def recovered(incident: Incident) -> str:
    """`, recovered at step 120`; empty while it stands."""
    return "" if incident.recovered_step is None else f", recovered at step {incident.recovered_step}"


def accepted(incident: Incident, result: Result) -> list[tuple[str, str]]:
    """What was acknowledged of an incident, and the reason: all of it at once, or one type after the other."""
    known = result.acknowledgements_in(incident)
    alike = {(ack.until, ack.reason) for ack in known}
    whole = len(alike) == 1 and result.acknowledgement_of(incident) is not None
    return [
        (("Acknowledged" if whole else f"{ack.type} is acknowledged") + (f" until {ack.until}" if ack.until else ""), ack.reason)
        for ack in (known[:1] if whole else known)
    ]


def last_good(incident: Incident) -> str:
    """The last good step, or that there is none."""
    return "none in this log" if incident.last_good_step is None else str(incident.last_good_step)


def in_brief(incident: Incident) -> str:
    """An incident in a line: cause, since when, last good step, and the first sentence of the advice."""
    advice = _NEXT_SENTENCE.split(clean(incident.advice, 1000), maxsplit=1)[0]
    head = f"Since step {incident.step}: {clean(incident.title)}{recovered(incident)}"
    return f"{head}; last good step: {last_good(incident)}. What to do: {advice}"


def cause_line(worst: Incident | None, reason: str) -> str:
    """What a run is listed with: the title of its worst incident and its step, else the reason of its verdict."""
    return reason if worst is None else f"{worst.title} (step {worst.step})"


def how_it_ended(run_id: str, events: int, result: Result) -> str:
    """A line about a run at its end: verdict, reason, and its worst incident."""
    line = f"{clean(run_id, 60)}: {result.verdict} after {events} events: {clean(result.reason)}."
    return f"{line} {in_brief(result.worst)}" if result.worst else line


def may_also_be(incident: Incident) -> str:
    """The other causes that would explain it, the most likely first; empty without any."""
    return "; ".join(TITLES.get(rival, in_words(rival)) for rival in incident.rivals)


def marks_of(incidents: Sequence[Incident], number: int = 1) -> list[Mark]:
    """A mark for each incident, numbered from `number`, and one for the last good step before the worst."""
    marks = [
        Mark(incident.step, str(place), incident.severity, f"{incident.severity} at step {incident.step}: {incident.title}")
        for place, incident in enumerate(incidents, number)
    ]
    worst = worst_incident(incidents)
    if worst is not None and worst.last_good_step is not None:
        marks.append(Mark(worst.last_good_step, "✓", "good", f"last good step: {worst.last_good_step}"))
    return marks


def panels_showing(types: Iterable[str]) -> list[str]:
    """The keys of the panels that show anomalies of these types: of each the one that shows it best, then the others."""
    found = [BY_TYPE[kind].panels for kind in types if kind in BY_TYPE and BY_TYPE[kind].panels]
    best = [keys[0] for keys in found]
    return list(dict.fromkeys((*best, *(key for keys in found for key in keys))))


def evidence_keys(types: Iterable[str], available: Collection[str], most: int = 4) -> list[str]:
    """Which of the available panels show an incident: that of what moved first, then those of what followed.

    `types` are those of its anomalies, in the order of its story. Where they have fewer than two panels, reward, KL or losses
    are added.
    """
    shown = [key for key in panels_showing(types) if key in available][:most]
    return shown + [key for key in ALWAYS_SHOWN if key in available and key not in shown][: max(0, min(2, most) - len(shown))]
