"""What the metamorphic relations change, what they leave alone, and that a judge which depends on it is found out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.testing.metamorphic import (
    Reductions,
    average_rows,
    change_kl_unit,
    compare,
    keep_rows,
    put_before,
    relations,
    scale_reward,
    shift_reward,
)

ROW = {
    "reward_mean": 0.5, "reward_std": 0.2, "value_mean": 0.4, "value_loss": 0.09, "advantage_std": 1.5, "advantage_raw": 1.0,
    "reward_function_mean/right": 0.3, "kl_mean": 0.02, "kl_penalty_reward": -0.01, "entropy_mean": 1.2,
    "rollout_length_mean": 50.0,
    "preference_margin": 2.0,
}  # fmt: skip


def rows(count: int, **changes: float) -> list[Event]:
    return [Event(step, {**ROW, **changes}) for step in range(count)]


def raised(index: int, severity: str = "critical") -> Anomaly:
    return Anomaly("toy", severity, "run", index, index, "", 0.0, 0.0, "", index)


def limit_judge(limit: float) -> object:
    """A judge with a limit on the reward itself: it depends on its zero and its scale."""

    def judge(events: Sequence[Event], how: Reductions) -> list[Anomaly]:
        return [raised(row) for row, event in enumerate(events) if event.metrics["reward_mean"] < limit][:1]

    return judge


def test_a_shift_moves_levels_and_neither_spreads_nor_advantages() -> None:
    changed = shift_reward(rows(2), {}, 100.0).events[1].metrics
    moved = {name for name in ROW if changed[name] != ROW[name]}
    assert moved == {"reward_mean", "value_mean", "reward_function_mean/right"}
    assert changed["reward_mean"] == 100.5


def test_a_scale_multiplies_what_is_in_units_of_the_reward_and_squares_it_in_losses() -> None:
    changed = scale_reward(rows(2), {}, 10.0).events[0].metrics
    assert changed["reward_mean"] == 5.0 and changed["reward_std"] == 2.0 and changed["advantage_std"] == 15.0
    assert changed["value_loss"] == pytest.approx(9.0) and changed["reward_function_mean/right"] == 3.0
    untouched = ("kl_mean", "kl_penalty_reward", "entropy_mean", "rollout_length_mean", "preference_margin")
    assert all(changed[name] == ROW[name] for name in untouched)


def test_normalised_advantages_have_no_scale() -> None:
    assert scale_reward(rows(2, advantage_raw=0.0), {}, 10.0).events[0].metrics["advantage_std"] == 1.5


@given(st.integers(1, 60), st.sampled_from([2, 5, 10]))
def test_kept_and_averaged_rows_stand_for_the_same_places(count: int, every: int) -> None:
    events = [Event(step, {"reward_mean": float(step)}) for step in range(count)]
    kept, means = keep_rows(events, {}, every), average_rows(events, {}, every)
    assert kept.rows == means.rows == [row for row in range(count) if row % every == every - 1]
    assert [event.step for event in kept.events] == kept.rows
    assert [event.metrics["reward_mean"] for event in means.events] == [row - (every - 1) / 2 for row in means.rows]


def test_a_mean_over_rows_of_which_some_lack_a_metric_is_over_the_others() -> None:
    events = [Event(0, {"kl_mean": 1.0}), Event(1, {}), Event(2, {"entropy_mean": 2.0}), Event(3, {"kl_mean": 3.0})]
    assert average_rows(events, {}, 4).events[0].metrics == {"kl_mean": 2.0, "entropy_mean": 2.0}


def test_kl_changes_its_unit_by_the_length_and_back() -> None:
    there = change_kl_unit(rows(3), {"kl_mean": "token"})
    assert there.reductions == {"kl_mean": "sequence"} and there.events[0].metrics["kl_mean"] == 1.0
    back = change_kl_unit(there.events, there.reductions)
    assert back.reductions == {"kl_mean": "token"} and back.events[0].metrics["kl_mean"] == pytest.approx(0.02)


def test_healthy_rows_come_before_and_steps_go_on() -> None:
    related = put_before(rows(3), {}, rows(4))
    assert [event.step for event in related.events] == list(range(7)) and related.rows == [-1] * 4 + [0, 1, 2]


def test_a_judge_that_depends_on_the_zero_of_the_reward_is_found_out() -> None:
    events, judge = rows(20) + rows(20, reward_mean=-0.5), limit_judge(0.0)
    found = {name: compare(judge, events, relation) for name, relation in relations(rows(30)).items()}  # type: ignore[arg-type]
    assert found["the reward plus 100"] == "critical became healthy"
    assert found["the reward minus 40"] == "critical at row 20 moved by -20 rows"
    unmoved = ("the reward times 1000", "one row in 5", "KL in the other unit", "healthy rows before")
    assert all(found[name] is None for name in unmoved)


def test_a_judge_that_counts_rows_is_found_out() -> None:
    def judge(events: Sequence[Event], how: Reductions) -> list[Anomaly]:
        return [raised(25)] if len(events) > 25 else []

    events = rows(100)
    assert compare(judge, events, relations()["one row in 2"]) == "critical at row 25 moved by 26 rows"
    assert compare(judge, events, relations()["means of 10 rows"]) == "critical became healthy"


def test_a_warning_one_kept_row_later_is_the_same_verdict() -> None:
    def judge(events: Sequence[Event], how: Reductions) -> list[Anomaly]:
        return [raised(row, "warning") for row, event in enumerate(events) if event.step >= 23][:1]

    assert compare(judge, rows(60), relations()["one row in 5"]) is None


@pytest.mark.parametrize("name", list(relations(rows(2))))
def test_no_relation_changes_the_events_it_is_given(name: str) -> None:
    events = rows(12)
    before = [dict(event.metrics) for event in events]
    relations(rows(2))[name](events, {"kl_mean": "token"})
    assert [event.metrics for event in events] == before
