"""The fleet: which causes, when, what they cost, which configurations fail, and one line per incident over all its seeds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from itertools import combinations
from typing import Any

from rldk.core.knobs import KNOBS
from rldk.core.text import clean, counted, duration, few, short_number
from rldk.core.verdicts import counts_of
from rldk.fleet.row import CONFIG
from rldk.functional.small_samples import chance_of_as_many, wilson_interval
from rldk.present.verdicts import counts_in_words

__all__ = ["Folded", "Overview", "RiskyConfig", "digest_text", "headline", "overview_of"]

Row = Mapping[str, Any]

CHANCE = 0.05
"""A configuration is named if so many failures would be this unlikely by chance, over all that were compared."""

_NO_SETTING = frozenset({"seed", "max_steps", "num_epochs", "logging_steps", "save_steps", "total_episodes"})
_MOST_VALUES, _MOST_SINGLES = 20, 12
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class RiskyConfig:
    """A condition on the settings under which runs fail more often: `failed` of `runs`, and of all the `others`.

    `interval` is the 95 % interval of the share; `chance` how likely so many failures were by chance, corrected for the number of
    conditions that were compared.
    """

    condition: str
    failed: int
    runs: int
    interval: tuple[float, float]
    failed_others: int
    others: int
    chance: float


@dataclass(frozen=True, slots=True)
class Folded:
    """One incident, with all runs that had it: the same cause under the same settings except for the seed."""

    cause: str
    title: str
    verdict: str
    names: list[str]
    first_onset: int
    last_onset: int


@dataclass(slots=True)
class Overview:
    """What is known of many runs. `lost` is the share of compute that was spent after the first critical."""

    runs: int
    verdicts: dict[str, int]
    lost: float
    lost_seconds: float
    causes: list[dict[str, Any]] = field(default_factory=list)
    configs: list[RiskyConfig] = field(default_factory=list)
    incidents: list[Folded] = field(default_factory=list)
    compared: int = 0

    def to_dict(self) -> dict[str, Any]:
        """As `rldk fleet --json` prints it."""
        return asdict(self)


def overview_of(rows: Sequence[Row]) -> Overview:
    """The overview of the runs of an index."""
    verdicts = counts_of(row["verdict"] for row in rows)
    lost, seconds = _lost(rows)
    configs, compared = risky_configs(rows)
    return Overview(len(rows), verdicts, lost, seconds, _causes(rows), configs, _folded(rows), compared)


def _lost(rows: Sequence[Row]) -> tuple[float, float]:
    """The share of compute after the first critical: by time where all runs say it, else by events; and the seconds."""
    timed = bool(rows) and all(row["seconds"] for row in rows)
    weights = [float(row["seconds"] if timed else row["events"]) for row in rows]
    wasted = [weight * (row["lost_share"] or 0.0) for weight, row in zip(weights, rows, strict=True)]
    seconds = sum((row["seconds"] or 0.0) * (row["lost_share"] or 0.0) for row in rows)
    return (sum(wasted) / sum(weights) if sum(weights) else 0.0), seconds


def _causes(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Each cause with the number of runs per week, the most frequent first."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["cause"] is None:
            continue
        cause = found.setdefault(row["cause"], {"cause": row["cause"], "title": row["cause_title"], "runs": 0, "weeks": {}})
        cause["runs"] += 1
        week = _week(row)
        cause["weeks"][week] = cause["weeks"].get(week, 0) + 1
    for cause in found.values():
        cause["weeks"] = dict(sorted(cause["weeks"].items()))
    return sorted(found.values(), key=lambda cause: (-cause["runs"], cause["cause"]))


def _week(row: Row) -> str:
    """The week in which a run ended: by its log, else by when the file last changed."""
    seconds = row["ended"] if row["ended"] is not None else row["file_changed"] / 1e9
    year, week, _ = datetime.fromtimestamp(seconds, timezone.utc).isocalendar()
    return f"{year}-W{week:02}"


def risky_configs(rows: Sequence[Row]) -> tuple[list[RiskyConfig], int]:
    """The conditions under which runs become critical more often than by chance, and how many were compared."""
    failed = frozenset(number for number, row in enumerate(rows) if row["verdict"] == "critical")
    singles = _conditions(rows)
    ranked = sorted(singles, key=lambda one: _chance(one[1], failed, len(rows)))[:_MOST_SINGLES]
    pairs = [((*one[0], *two[0]), one[1] & two[1]) for one, two in combinations(ranked, 2) if _knob(one) != _knob(two)]
    candidates = [(words, members) for words, members in [*singles, *pairs] if 0 < len(members) < len(rows)]
    named: list[RiskyConfig] = []
    seen: set[frozenset[int]] = set()
    for words, members in sorted(candidates, key=lambda one: (_chance(one[1], failed, len(rows)), len(one[0]))):
        chance = min(1.0, _chance(members, failed, len(rows)) * len(candidates))
        if chance >= CHANCE:
            break
        if members in seen:
            continue  # another name for the same runs
        seen.add(members)
        bad = len(members & failed)
        others = len(rows) - len(members)
        interval = wilson_interval(bad, len(members))
        named.append(RiskyConfig(" and ".join(words), bad, len(members), interval, len(failed) - bad, others, chance))
    return named, len(candidates)


def _knob(condition: tuple[tuple[str, ...], frozenset[int]]) -> str:
    return condition[0][0].split()[0]


def _chance(members: frozenset[int], failed: frozenset[int], runs: int) -> float:
    bad = len(members & failed)
    return chance_of_as_many(bad, len(members), len(failed) - bad, runs - len(members))


def _conditions(rows: Sequence[Row]) -> list[tuple[tuple[str, ...], frozenset[int]]]:
    """What can be said of one setting: at least, at most or equal to one of its values; with the runs that it holds for."""
    found: list[tuple[tuple[str, ...], frozenset[int]]] = []
    for knob in KNOBS:
        values = {number: row[CONFIG + knob] for number, row in enumerate(rows) if row.get(CONFIG + knob) is not None}
        distinct = sorted(set(values.values()), key=lambda value: (str(type(value)), value))
        if knob in _NO_SETTING or not 2 <= len(distinct) <= _MOST_VALUES:
            continue
        numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in distinct)
        for place, value in enumerate(distinct):
            said = short_number(value) if numbers else str(value)
            found.append(((f"{knob} = {said}",), _where(values, lambda one, v=value: one == v)))
            if numbers and 0 < place < len(distinct) - 1:
                found.append(((f"{knob} ≥ {said}",), _where(values, lambda one, v=value: one >= v)))
                found.append(((f"{knob} ≤ {said}",), _where(values, lambda one, v=value: one <= v)))
    return found


def _where(values: Mapping[int, Any], holds: Any) -> frozenset[int]:
    return frozenset(number for number, value in values.items() if holds(value))


def _folded(rows: Iterable[Row]) -> list[Folded]:
    """One line for each cause under the same settings except for the seed; the critical ones and the most frequent first."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["cause"] is not None:
            known = {knob: row.get(CONFIG + knob) for knob in KNOBS if knob != "seed"}
            settings = tuple((knob, value) for knob, value in known.items() if value is not None)
            family = settings or _DIGITS.sub("#", row["name"])
            groups.setdefault((row["verdict"], row["cause"], row["framework"], family), []).append(row)
    folded = [
        Folded(
            same[0]["cause"], same[0]["cause_title"], same[0]["verdict"], sorted(row["name"] for row in same),
            min(row["onset_step"] for row in same), max(row["onset_step"] for row in same),
        )
        for same in groups.values()
    ]  # fmt: skip
    return sorted(folded, key=lambda one: (one.verdict != "critical", -len(one.names), one.names[0]))


def headline(overview: Overview) -> str:
    """The runs, their verdicts and the compute that was lost, in one sentence."""
    counts = counts_in_words(overview.verdicts, ", ")
    share = f"{overview.lost:.1%}" if overview.lost >= 0.001 else "less than 0.1%"
    what = f"{duration(overview.lost_seconds)} of training ({share})" if overview.lost_seconds else f"{share} of the compute"
    lost = f"; {what} came after the first critical" if overview.lost else ""
    return f"{counted(overview.runs, 'run')}{': ' + counts if counts else ''}{lost}"


def digest_text(overview: Overview, most: int = 5) -> str:
    """The overview in a few lines, as a message shows it."""
    lines = [f"rldk: {headline(overview)}"]
    for one in overview.configs[:most]:
        others = f"{one.failed_others} of {one.others} otherwise"
        lines.append(f"· {clean(one.condition)}: {one.failed} of {one.runs} critical, {others}")
    for incident in overview.incidents[:most]:
        names = few([clean(name, 60) for name in incident.names], 3)
        lines.append(f"· {incident.verdict}: {incident.title}, {counted(len(incident.names), 'run')} ({names})")
    hidden = len(overview.incidents) - most
    return "\n".join([*lines, f"· and {counted(hidden, 'more incident')}"] if hidden > 0 else lines)
