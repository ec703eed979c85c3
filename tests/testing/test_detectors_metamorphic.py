"""The metamorphic relations over the table of detectors, each on its sick stream; what is known not to hold stands in a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.detectors.base import Detector
from rldk.detectors.table import DETECTORS
from rldk.judge.engine import Engine
from rldk.testing.metamorphic import Judge, Reductions, Related, average_rows, compare, put_before, relations, worst
from rldk.testing.sick import sick

UNITS = ("the reward minus 40", "the reward plus 100", "the reward times 0.01", "the reward times 1000", "KL in the other unit")
EXEMPT = {
    ("reward_changed", "the reward minus 40"): "a flipped sign is a matter of the zero",
    ("reward_changed", "the reward plus 100"): "a flipped sign is a matter of the zero",
    ("advantage_normalization_anomaly", "the reward times 0.01"): "it says that advantages are not of spread 1",
    ("negative_kl", "KL in the other unit"): "its limit is in the unit of the log",
    ("controller_overshoot_anomaly", "KL in the other unit"): "the target is followed in the unit of the log, as lengths change",
    ("reward_saturation", "KL in the other unit"): "the KL it compares with is in the unit of the log, as lengths change",
}
"""What is known to depend on a unit, and why."""
OPENING = 40  # rows that are healthy in every stream whose fault begins in the middle


def judge_of(kind: type[Detector]) -> Judge:
    def judge(events: Sequence[Event], how: Reductions) -> list[Anomaly]:
        if (tuple(events), dict(how)) == sick_of(kind):  # a relation may leave a stream as it is
            return found_of(kind)
        return judged(kind, events, how)

    return judge


def judged(kind: type[Detector], events: Sequence[Event], how: Reductions) -> list[Anomaly]:
    engine = Engine([kind()], reductions=dict(how))
    for event in events:
        engine.observe(replace(event, model_info={}))
    return engine.anomalies


@cache
def found_of(kind: type[Detector]) -> list[Anomaly]:
    return judged(kind, *sick_of(kind))


@cache
def sick_of(kind: type[Detector]) -> tuple[tuple[Event, ...], dict[str, str]]:
    events = tuple(sick(kind))
    return events, dict(events[0].model_info.get("reductions", {}))


@pytest.mark.parametrize("kind", DETECTORS, ids=lambda kind: kind.type)
def test_no_verdict_depends_on_the_units_of_reward_and_kl(kind: type[Detector]) -> None:
    events, how = sick_of(kind)
    for name in UNITS:
        if (kind.type, name) not in EXEMPT:
            assert compare(judge_of(kind), events, relations()[name], how) is None, name


@pytest.mark.parametrize("kind", DETECTORS, ids=lambda kind: kind.type)
def test_no_verdict_depends_on_unrelated_metrics(kind: type[Detector]) -> None:
    events, how = sick_of(kind)
    related = {*kind.all_metrics(), "kl_mean", "rollout_length_mean", "entropy_mean"}

    def keep_related(rows: Sequence[Event], units: Reductions) -> Related:
        kept = [replace(row, metrics={name: value for name, value in row.metrics.items() if name in related}) for row in rows]
        return Related(kept, list(range(len(kept))), dict(units))

    assert compare(judge_of(kind), events, keep_related, how) is None


NEEDS_DENSE_ROWS = {
    "kl_spike", "kl_trend_anomaly", "kl_volatility_anomaly", "controller_responsiveness_anomaly", "reward_changed",
    "sparse_reward", "plateau", "gradient_balance_anomaly", "ratio_trend_anomaly", "advantage_trend_anomaly",
}  # fmt: skip
"""Detectors that lose what they found where a row is the mean of five, on streams of 300 rows: some are about single rows,
`reward_changed` must not take what a policy learnt within a row for a change, the others still count rows; a chance trend of
a plateau may look real in a few means."""


@pytest.mark.parametrize("kind", [kind for kind in DETECTORS if kind.type not in NEEDS_DENSE_ROWS], ids=lambda kind: kind.type)
def test_means_of_five_rows_give_the_same_verdict(kind: type[Detector]) -> None:
    events, how = sick_of(kind)
    sparse = average_rows(events, how, 5)
    assert worst(judge_of(kind)(sparse.events, how)) == worst(judge_of(kind)(events, how))


@pytest.mark.parametrize("kind", DETECTORS, ids=lambda kind: kind.type)
def test_a_fault_is_found_as_well_after_more_healthy_rows(kind: type[Detector]) -> None:
    """Where a stream begins healthy, its first rows put before it once more change neither the verdict nor much of the delay."""
    events, how = sick_of(kind)
    found = judge_of(kind)(events, how)
    if not found or found[0].index < 100 or kind.type == "plateau":
        pytest.skip("sick from the start, or silent on this stream")
    longer = put_before(events, how, events[:OPENING])
    again = judge_of(kind)(longer.events, how)
    assert worst(again) == worst(found)
    assert abs(longer.rows[again[0].index] - found[0].index) <= 1.5 * OPENING
