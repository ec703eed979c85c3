"""KL schedule: every number against the plain history."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.errors import UsageError
from rldk.forensics import KLScheduleTracker

TARGET, TOLERANCE, WINDOW = 0.5, 0.25, 12


def side(kl: float) -> int:
    return 0 if abs(kl - TARGET) <= TOLERANCE else 1 if kl > TARGET else -1


def longest_run(flags: list[bool]) -> int:
    best = now = 0
    for flag in flags:
        now = now + 1 if flag else 0
        best = max(best, now)
    return best


def overshoot(kls: list[float]) -> float:
    """Excursions one after another; two of opposite sides less than 20 KLs apart belong together."""
    excursions: list[list[Any]] = []
    calm = 0
    for kl in kls:
        now = side(kl)
        if not now:
            calm += 1
            continue
        if excursions and excursions[-1][0] == now and calm < 20:
            excursions[-1][1] = max(excursions[-1][1], abs(kl - TARGET))
        else:
            before = excursions[-1][1] if excursions and calm < 20 else 0.0
            excursions.append([now, abs(kl - TARGET), before])
        calm = 0
    if not excursions:
        return math.nan
    _, peak, before = excursions[-1]
    return 0.0 if calm >= 20 or not before else peak / before


def turns(coefs: list[float]) -> list[int]:
    """Where the coefficient turns by more than 10 %, counted from 1."""
    found: list[int] = []
    extreme, direction = math.log(coefs[0]), 0
    for number, coef in enumerate(coefs[1:], 2):
        away = math.log(coef) - extreme
        if coef == coefs[number - 2]:
            continue
        if away * direction > 0:
            extreme = math.log(coef)
        elif abs(away) > 0.1:
            if direction:
                found.append(number)
            direction = 1 if away > 0 else -1
            extreme = math.log(coef)
    return found


def responsiveness(kls: list[float], coefs: list[float]) -> float:
    moves = [(after - before) * side(kl) > 0 for kl, before, after in zip(kls, coefs, coefs[1:], strict=False) if side(kl)][
        -WINDOW:
    ]
    return sum(moves) / len(moves) if moves else math.nan


kl_values = st.integers(-4, 24).map(lambda whole: whole / 16)
coefs_of = st.lists(st.sampled_from([0.5, 0.55, 0.6, 0.7, 1.0, 1.3]), min_size=1, max_size=60)


@settings(max_examples=150, deadline=None)
@given(coefs=coefs_of, data=st.data())
def test_everything_is_what_the_history_says(coefs: list[float], data: st.DataObject) -> None:
    kls = data.draw(st.lists(kl_values, min_size=len(coefs), max_size=len(coefs)))
    tracker = KLScheduleTracker(TARGET, TOLERANCE, WINDOW)
    for step, (kl, coef) in enumerate(zip(kls, coefs, strict=True)):
        found = tracker.update(step, kl, coef)
    seen, outside = kls[-WINDOW:], [side(kl) != 0 for kl in kls]
    assert found.step == len(kls) - 1
    assert (found.current_kl, found.current_kl_coef) == (kls[-1], coefs[-1])
    assert found.kl_mean == pytest.approx(np.mean(seen))
    assert found.time_in_target_range == pytest.approx(1 - np.mean(outside))
    assert found.target_range_stability == pytest.approx(np.mean([{0: 1.0, 1: 0.0, -1: 0.5}[side(kl)] for kl in seen]))
    assert found.target_range_violations == sum(
        now and not before for now, before in zip(outside, [False, *outside], strict=False)
    )
    assert found.violation_length == next((count for count, out in enumerate(reversed(outside)) if not out), len(outside))
    assert found.longest_violation == longest_run(outside)
    assert found.coef_adaptive == (len(set(coefs)) > 1)
    if len(seen) > 1:
        assert found.kl_std == pytest.approx(np.std(seen, ddof=1), abs=1e-9)
        assert found.kl_trend == pytest.approx(np.polyfit(range(len(seen)), seen, 1)[0], abs=1e-9)
        assert found.coef_trend == pytest.approx(np.polyfit(range(len(seen)), np.log(coefs[-WINDOW:]), 1)[0], abs=1e-9)
    if found.coef_adaptive:
        assert found.controller_responsiveness == pytest.approx(responsiveness(kls, coefs), nan_ok=True)
        assert found.controller_overshoot == pytest.approx(overshoot(kls), nan_ok=True)
        count = sum(len(coefs) - turn < WINDOW for turn in turns(coefs))
        assert found.controller_oscillation == (pytest.approx((count - 1) / (count + 1)) if count > 1 else 0.0)
    else:
        assert math.isnan(found.controller_responsiveness)
        assert math.isnan(found.controller_overshoot)
        assert math.isnan(found.controller_oscillation)


def test_volatility_and_scores_by_hand() -> None:
    kls = [0.4, 0.6, 0.5, 0.7, 0.55, 0.45]
    tracker = KLScheduleTracker(0.3, 0.1, 10)
    for step, kl in enumerate(kls):
        found = tracker.update(step, kl)
    x = np.arange(len(kls))
    slope, offset = np.polyfit(x, kls, 1)
    spread = math.sqrt(sum((kls - slope * x - offset) ** 2) / (len(kls) - 2))
    mean = float(np.mean(kls))
    assert found.kl_volatility == pytest.approx(spread / (mean + 0.01 + spread))
    assert found.score_parts["kl_health"] == pytest.approx({"level": 0.1 / (mean - 0.3), "steadiness": 1.0, "trend": 1.0})
    assert found.kl_health_score == pytest.approx((0.1 / (mean - 0.3)) ** (1 / 3))
    assert found.score_parts["schedule_health"]["range"] == found.target_range_stability


def controlled(gain: float, steps: int = 400, delay: int = 1, seed: int = 0) -> list[tuple[float, float]]:
    """A KL that falls with the coefficient, and an adaptive controller of the given strength."""
    rng = random.Random(seed)
    coef, rows, kls = 0.2, [], [6.0] * delay
    for _ in range(steps):
        kl = 0.8 * kls[-1] + 0.2 * 1.2 / coef + rng.gauss(0, 0.1)
        kls.append(kl)
        rows.append((kl, coef))
        coef *= 1 + max(-0.2, min(0.2, kls[-delay] / 6.0 - 1)) * gain
    return rows


def test_a_good_controller_scores_high_and_a_nervous_one_low() -> None:
    calm, nervous = KLScheduleTracker(6.0, 1.0), KLScheduleTracker(6.0, 1.0)
    swings = []
    for step, ((kl, coef), (wild, jumps)) in enumerate(zip(controlled(0.1), controlled(2.0, delay=4), strict=True)):
        good, bad = calm.update(step, kl, coef), nervous.update(step, wild, jumps)
        swings.append(bad.controller_overshoot)
    assert good.schedule_health_score > 0.9
    assert good.time_in_target_range > 0.9
    assert bad.schedule_health_score < 0.6
    assert bad.controller_oscillation > 0.5
    assert max(swings[-50:]) > 1.0


def test_a_coefficient_that_stops_while_the_kl_is_outside_is_stuck() -> None:
    tracker = KLScheduleTracker(0.1, 0.05)
    for step in range(5):
        tracker.update(step, 0.1, 0.2 + 0.01 * step)
    stuck = [tracker.update(step, 0.9, 0.24).coef_stuck for step in range(5, 20)]
    assert stuck == [False] * 9 + [True] * 6
    assert tracker.metrics().score_parts["schedule_health"]["moving"] == 0.25


def test_a_fixed_coefficient_is_no_controller() -> None:
    tracker = KLScheduleTracker(0.1, 0.05)
    for step in range(50):
        found = tracker.update(step, 0.9, 0.2)
    assert not found.coef_adaptive
    assert not found.coef_stuck
    assert math.isnan(found.controller_responsiveness)


def test_no_score_rests_on_a_target_that_nobody_chose() -> None:
    default, chosen = KLScheduleTracker(None), KLScheduleTracker()
    for step in range(30):
        unset, given_ = default.update(step, 6.0 + 0.01 * (step % 3), 0.2), chosen.update(step, 6.0 + 0.01 * (step % 3), 0.2)
    assert unset.kl_target == given_.kl_target == 0.1
    assert unset.time_in_target_range == given_.time_in_target_range == 0.0
    assert unset.kl_health_score == 1.0
    assert math.isnan(unset.schedule_health_score)
    assert given_.kl_health_score < 0.3
    assert given_.schedule_health_score == 0.0


def test_a_kl_that_is_infinite_now_is_not_healthy() -> None:
    tracker = KLScheduleTracker()
    for step in range(10):
        tracker.update(step, 0.1)
    assert tracker.update(10, math.inf).kl_health_score == 0.0
    assert tracker.update(11, 0.1).kl_health_score == 1.0


def test_what_is_not_logged_stays_nan() -> None:
    found = KLScheduleTracker().update(1).to_dict()
    known = {"step", "kl_target", "kl_target_tolerance", "coef_adaptive", "coef_stuck"}
    counts = {"target_range_violations", "violation_length", "longest_violation"}
    assert {name for name, value in found.items() if value is not None} == known | counts


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"kl_target": math.nan}, "`kl_target` to be a finite number"),
        ({"kl_target_tolerance": -1}, "`kl_target_tolerance` to be a finite number of at least 0"),
        ({"window_size": 2}, "`window_size` to be a whole number of at least 3"),
    ],
)
def test_settings_out_of_range_are_refused(settings_: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        KLScheduleTracker(**settings_)


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(UsageError, match="`kl` to be a number, got 'high'"):
        KLScheduleTracker().update(1, "high")  # type: ignore[arg-type]
