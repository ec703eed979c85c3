"""Best, fall, jumps and trend of the reward; none of it depends on the zero or the scale of the reward."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.core.event import Event
from rldk.judge.engine import Engine
from rldk.signals.reward import RewardSignal

ROWS = 200
AT = np.arange(ROWS)
LATE = AT >= 100


def noise(scale: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scale, ROWS)


STAYS = {"kl_mean": 0.05 + noise(0.002, 3), "entropy_mean": 1.0 + noise(0.02, 4)}
LEARNT = np.clip(0.1 + AT / 100.0, 0.0, 0.8) + noise(0.01)


def signal(reward, steps: int = 1, **channels) -> RewardSignal:
    engine = Engine([], follow=("reward_mean", "reward_std", *channels))
    for row, value in enumerate(np.asarray(reward, dtype=float)):
        metrics = {"reward_mean": float(value), **{name: float(values[row]) for name, values in channels.items()}}
        engine.observe(Event(row * steps, metrics))
    return engine.view.reward


def test_the_best_is_the_highest_median_that_was_held_for_three_rows():
    values = LEARNT.tolist()
    levels = [sorted(values[end - 5 : end])[2] for end in range(5, ROWS + 1)]
    held = [levels[0], *(min(levels[max(0, end - 3) : end]) for end in range(3, len(levels) + 1))]
    assert signal(values).best == max(held)


def test_swing_and_spread_against_a_loop():
    swing, spread, slow = 0.0, 0.0, LEARNT[0]
    for n in range(2, ROWS + 1):
        away = LEARNT[n - 1] - slow
        spread += 0.05 * (1.2533 * abs(away) - spread)
        slow += 0.05 * away
        if n > 5:
            swing += (abs(LEARNT[n - 1] - LEARNT[n - 6]) - swing) * (1.0 / (n - 5) if n <= 20 else 0.04)
    found = signal(LEARNT)
    assert (found.swing, found.spread) == pytest.approx((swing, spread))


def test_swing_and_spread_are_those_of_the_reward_once_it_is_logged():
    engine = Engine([], follow=("reward_mean", "accuracy"))
    for row, value in enumerate(LEARNT):
        engine.observe(Event(row, {"accuracy": float(row % 2), **({"reward_mean": float(value)} if row >= 50 else {})}))
    alone = signal(LEARNT[50:])
    assert (engine.view.reward.swing, engine.view.reward.spread) == (alone.swing, alone.spread)


def test_more_of_an_event_without_a_reward_leaves_swing_and_spread_as_they_are():
    engine = Engine([], follow=("reward_mean", "kl_mean"))
    for row, value in enumerate(LEARNT):
        engine.observe(Event(row, {"reward_mean": float(value)}))
        engine.supplement(Event(row, {"kl_mean": 0.05}))
    whole = signal(LEARNT)
    assert (engine.view.reward.swing, engine.view.reward.spread) == (whole.swing, whole.spread)


def test_a_spike_of_two_rows_is_no_best():
    spiked = np.where((AT == 150) | (AT == 151), 5.0, LEARNT)
    assert signal(spiked).best < 0.85


def test_the_deepest_fall_that_the_run_came_back_from():
    dipped = np.where((AT >= 120) & (AT < 130), 0.3, LEARNT)
    found = signal(dipped, **{name: np.where((AT >= 120) & (AT < 130), 2.0, 1.0) * values for name, values in STAYS.items()})
    assert found.dip == pytest.approx(0.5, abs=0.05)
    assert signal(LEARNT).dip < 0.1


def test_a_jump_while_the_policy_stays_moves_best_and_start_along():
    moved = signal(np.where(LATE, LEARNT - 5.0, LEARNT), **STAYS)
    assert moved.jump == pytest.approx(-5.0, abs=0.1) and moved.jump_index == 100 and moved.flipped < 0
    still = signal(LEARNT, **STAYS)
    assert moved.gain == pytest.approx(still.gain, abs=0.1) and still.jump_index < 0


def test_a_channel_that_was_on_its_way_before_does_not_hide_a_jump():
    drifting = {**STAYS, "entropy_mean": np.where(AT >= 98, 0.8, 1.0) + noise(0.005, 4)}  # it fell two rows earlier
    assert signal(np.where(LATE, LEARNT - 5.0, LEARNT), **drifting).jump_index == 100
    left = {**STAYS, "entropy_mean": np.where(AT >= 99, 0.2, 1.0) + noise(0.005, 4)}
    assert signal(np.where(LATE, LEARNT - 5.0, LEARNT), **left).jump_index < 0


def test_a_sign_that_is_flipped():
    flipped = signal(np.where(LATE, -1.0, 1.0) * LEARNT, **STAYS)
    assert flipped.flipped == 100


@pytest.mark.parametrize(
    "changes",
    [
        {"channels": {name: np.where(LATE, 3.0, 1.0) * values for name, values in STAYS.items()}},
        {"channels": {}},
        {"channels": {**STAYS, "kl_mean": np.zeros(ROWS)}},
        {"channels": STAYS, "steps": 10},
        {"channels": STAYS, "rows": 2},
        {"channels": STAYS, "over": 20},
    ],
    ids=[
        "the policy moves too", "no channel is logged", "only one is filled in", "a row of ten steps", "two rows only",
        "over twenty rows",
    ],
)
def test_what_is_no_jump(changes):
    amount = np.clip((AT - 100) / changes.get("over", 1e-9), 0.0, 1.0)
    amount = np.where(100 + changes.get("rows", ROWS) > AT, amount, 0.0)
    assert signal(LEARNT - 2.0 * amount, changes.get("steps", 1), **changes["channels"]).jump_index < 0


def test_the_spread_after_a_jump_tells_a_scale_from_an_offset():
    spread = 0.5 + noise(0.01, 6)
    scaled = signal(np.where(LATE, 0.2, 1.0) * LEARNT, **STAYS, reward_std=np.where(LATE, 0.2, 1.0) * spread)
    offset = signal(np.where(LATE, LEARNT - 1.0, LEARNT), **STAYS, reward_std=spread)
    assert scaled.respread == pytest.approx(0.2, abs=0.05) and offset.respread == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("slope", [0.0, 0.002, -0.01])
def test_the_trend_is_that_of_ordinary_least_squares(slope):
    values = slope * AT + noise(0.1, 7)
    found = signal(values)
    line, residual, *_ = np.polyfit(AT, values, 1, full=True)
    error = np.sqrt(residual[0] / (ROWS - 2) / np.square(AT - AT.mean()).sum())
    assert found.trend == pytest.approx(line[0] / error, rel=1e-6)
    assert found.rise == pytest.approx(line[0] * (ROWS - 1), rel=1e-6)


@pytest.mark.parametrize(("scale", "zero"), [(1.0, -40.0), (1.0, 100.0), (0.01, 0.0), (1000.0, 3.0)])
@pytest.mark.parametrize(
    "reward", [LEARNT, np.where(LATE, 0.1, LEARNT), np.where(LATE, LEARNT - 5.0, LEARNT)], ids=["up", "lost", "jump"]
)
def test_zero_and_scale_change_nothing_but_the_unit(reward, scale, zero):
    before, after = signal(reward, **STAYS), signal(scale * (reward + zero), **STAYS)
    assert after.best == pytest.approx(scale * (before.best + zero), rel=1e-6)
    for name in ("gain", "dip", "noise", "shift", "noise_slow"):
        assert getattr(after, name) == pytest.approx(scale * getattr(before, name), rel=1e-6, abs=1e-9 * scale)
    assert (after.jump_index, after.trend) == (before.jump_index, pytest.approx(before.trend, rel=1e-5))


@pytest.mark.parametrize(("lost", "improves"), [(0.0, True), (0.05, True), (0.3, False)])
def test_a_rise_that_has_turned_is_no_improvement(lost, improves):
    """Over all rows the trend is still up."""
    reward = np.clip(AT / 80.0, 0.0, 1.0) - lost * np.clip((AT - 120) / 60.0, 0.0, 1.0) + noise(0.02)
    engine = Engine([], follow=("reward_mean",))
    for row, value in enumerate(reward):
        engine.observe(Event(row, {"reward_mean": float(value)}))
    found = engine.view.reward
    assert found.trend > 2.0 and found.improves(engine.series["reward_mean"]) is improves
