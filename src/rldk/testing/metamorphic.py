"""Changes of a log that must not change the verdict: another zero or scale of the reward, fewer rows, other units.

    for name, relation in relations(healthy_rows).items():
        difference = compare(judge, events, relation)      # None where the verdict stands

A judge is a function of events and of the reductions of their metrics that returns anomalies. A relation may only change when
something is raised, and by no more than one row of the changed log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite

from rldk.core.anomaly import Anomaly
from rldk.core.catalog import CATALOG
from rldk.core.event import Event
from rldk.core.verdicts import worst_of

__all__ = ["Judge", "Related", "Relation", "compare", "relations"]

Reductions = Mapping[str, str]
Judge = Callable[[Sequence[Event], Reductions], Sequence[Anomaly]]

_LEVELS = frozenset(
    [
        "reward_mean",
        "reward_min",
        "reward_max",
        "reward_after_kl",
        "rollout_mean_reward",
        "value_mean",
        "value_min",
        "value_max",
        "return_mean",
        "return_min",
        "return_max",
    ]
)
"""The metrics that change when a constant is added to every reward: levels, but not spreads and advantages."""


@dataclass(frozen=True)
class Related:
    """A log after a change that must not alter the judgement.

    `rows[i]` is the last row of the original that row `i` stands for; -1 for rows that were added before.
    """

    events: list[Event]
    rows: list[int]
    reductions: dict[str, str] = field(default_factory=dict)
    apart: int = 1


Relation = Callable[[Sequence[Event], Reductions], Related]


def relations(healthy: Sequence[Event] = ()) -> dict[str, Relation]:
    """All changes that must not alter the judgement, by name: add a new one here.

    With rows of a healthy run, also the one that adds them before.
    """
    found: dict[str, Relation] = {
        "the reward minus 40": partial(shift_reward, by=-40.0),
        "the reward plus 100": partial(shift_reward, by=100.0),
        "the reward times 0.01": partial(scale_reward, by=0.01),
        "the reward times 1000": partial(scale_reward, by=1000.0),
        "KL in the other unit": change_kl_unit,
    }
    for every in (2, 5, 10):
        found[f"one row in {every}"] = partial(keep_rows, every=every)
        found[f"means of {every} rows"] = partial(average_rows, every=every)
    if healthy:
        found["healthy rows before"] = partial(put_before, healthy=healthy)
    return found


def _mapped(events: Sequence[Event], how: Reductions, change: Callable[[str, float], float]) -> Related:
    changed = [replace(event, metrics={name: change(name, value) for name, value in event.metrics.items()}) for event in events]
    return Related(changed, list(range(len(changed))), dict(how))


def shift_reward(events: Sequence[Event], how: Reductions, by: float) -> Related:
    """The same run with a constant added to every reward."""

    def change(name: str, value: float) -> float:
        return value + by if name in _LEVELS or name.startswith("reward_function_mean/") else value

    return _mapped(events, how, change)


def scale_reward(events: Sequence[Event], how: Reductions, by: float) -> Related:
    """The same run with every reward, value and raw advantage in another unit; normalised advantages stay as they are."""
    powers = {"reward": 1, "reward²": 2}
    normalised = any(event.metrics.get("advantage_raw", 1.0) == 0.0 for event in events)

    def change(name: str, value: float) -> float:
        if name == "kl_penalty_reward" or (normalised and name.startswith("advantage")):
            return value
        family = f"{name.split('/')[0]}/*" if "/" in name else name
        entry = CATALOG.get(family)
        return value * by ** powers.get(entry.unit, 0) if entry is not None and entry.group != "preference" else value

    return _mapped(events, how, change)


def keep_rows(events: Sequence[Event], how: Reductions, every: int) -> Related:
    """A log that has only every n-th row."""
    rows = list(range(every - 1, len(events), every))
    return Related([events[row] for row in rows], rows, dict(how), every)


def average_rows(events: Sequence[Event], how: Reductions, every: int) -> Related:
    """A log whose rows are means over n of the original: what a trainer that logs every n steps writes."""
    made, rows = [], []
    for first in range(0, len(events) - every + 1, every):
        part = events[first : first + every]
        names = dict.fromkeys(name for event in part for name in event.metrics)
        means = {name: _mean([event.metrics[name] for event in part if name in event.metrics]) for name in names}
        made.append(replace(part[-1], metrics=means))
        rows.append(first + every - 1)
    return Related(made, rows, dict(how), every)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def change_kl_unit(events: Sequence[Event], how: Reductions) -> Related:
    """KL per token instead of per sequence, and the reverse, using the mean response length of each row, if all rows log it."""
    unit = how.get("kl_mean", "")
    lengths = [event.metrics.get("rollout_length_mean", 0.0) for event in events if "kl_mean" in event.metrics]
    if unit not in ("token", "sequence") or not all(isfinite(length) and length > 0.0 for length in lengths):
        return Related(list(events), list(range(len(events))), dict(how))
    names = ("kl_mean", "kl_std", "kl_max", "target_kl")

    def convert(event: Event) -> Event:
        length = event.metrics.get("rollout_length_mean", 1.0)
        factor = length if unit == "token" else 1.0 / length
        return replace(event, metrics={name: value * factor if name in names else value for name, value in event.metrics.items()})

    other = {"token": "sequence", "sequence": "token"}[unit]
    return Related([convert(event) for event in events], list(range(len(events))), {**how, "kl_mean": other})


def put_before(events: Sequence[Event], how: Reductions, healthy: Sequence[Event]) -> Related:
    """The run with a longer healthy phase before it."""
    first = healthy[-1].step + 1 if healthy else 0
    offset = first - (events[0].step if events else 0)
    moved = [replace(event, step=event.step + offset) for event in events]
    return Related([*healthy, *moved], [-1] * len(healthy) + list(range(len(events))), dict(how))


def worst(anomalies: Sequence[Anomaly]) -> str:
    """The verdict in one word: `critical`, `warning`, or empty."""
    return worst_of((anomaly.severity for anomaly in anomalies), "")


def compare(judge: Judge, events: Sequence[Event], relation: Relation, reductions: Reductions | None = None) -> str | None:
    """What a relation changed that it must not change, in words; `None` where the verdict stands.

    The first anomaly of the worst severity has to come at the same row, give or take one row of the changed log.
    """
    how = dict(reductions or {})
    related = relation(events, how)
    before, after = judge(events, how), judge(related.events, related.reductions)
    if worst(before) != worst(after):
        return f"{worst(before) or 'healthy'} became {worst(after) or 'healthy'}"
    if not before:
        return None
    then, now = (next(one.index for one in found if one.severity == worst(found)) for found in (before, after))
    moved = related.rows[now] - then
    if abs(moved) > related.apart:
        return f"{worst(before)} at row {then} moved by {moved} rows"
    return None
