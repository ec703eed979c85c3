"""What a change of the learning rate did to the reward."""

from __future__ import annotations

from math import nan

from rldk.functional.learning_rate import learning_rate_impact

STEPS = list(range(40))
RATES = [1e-5] * 20 + [1e-6] * 20
REWARDS = [0.1 * (step % 2) for step in range(20)] + [0.5 + 0.1 * (step % 2) for step in range(20)]


def test_the_reward_before_and_after_a_change() -> None:
    (change,) = learning_rate_impact(STEPS, RATES, REWARDS)
    assert (change["step"], change["from"], change["to"]) == (20, 1e-5, 1e-6)
    assert change["reward_after"] - change["reward_before"] == 0.5
    assert 9.0 < change["effect"] < 10.0


def test_a_slow_schedule_counts_once_it_has_moved_by_a_fifth_and_a_constant_never() -> None:
    decay = [1e-5 * 0.99**step for step in STEPS]
    assert [change["step"] for change in learning_rate_impact(STEPS, decay, REWARDS)] == [23]
    assert learning_rate_impact(STEPS, [1e-5] * 40, REWARDS) == []


def test_rows_without_a_rate_or_a_reward_are_left_out() -> None:
    rates = [nan if step % 2 else rate for step, rate in enumerate(RATES)]
    rewards = [nan if step % 3 == 0 else reward for step, reward in enumerate(REWARDS)]
    (change,) = learning_rate_impact(STEPS, rates, rewards)
    assert change["step"] == 20 and change["effect"] > 5.0
    assert learning_rate_impact(STEPS, rates, [nan] * 40) == []


def test_a_schedule_has_no_jumps_and_its_sudden_end_is_one() -> None:
    line = [1e-6 * (1 - step / 40) for step in STEPS]
    warm_up = [1e-6 * min(step / 10, 1.0) for step in STEPS]
    for smooth in (line, warm_up, [0.9 * rate for rate in line]):
        assert learning_rate_impact(STEPS, smooth, REWARDS, jumps_only=True) == []
    ends = [rate if step < 20 else 0.0 for step, rate in enumerate(line)]
    (change,) = learning_rate_impact(STEPS, ends, REWARDS, jumps_only=True)
    assert (change["step"], change["from"], change["to"]) == (20, line[19], 0.0)
    rates = [nan if step % 2 else rate for step, rate in enumerate(RATES)]
    assert [change["step"] for change in learning_rate_impact(STEPS, rates, REWARDS, jumps_only=True)] == [20]
