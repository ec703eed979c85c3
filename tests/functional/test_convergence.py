"""Where a curve settles, and when; beside scipy's fit of the same curve."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.functional.convergence import forecast, predict_convergence

STEPS = np.arange(0, 400, 2)


def noise(size: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, size, len(STEPS))


@pytest.mark.parametrize(("start", "level", "tau"), [(0.1, 0.9, 120.0), (-40.0, -10.0, 200.0), (5.0, 1.0, 90.0)])
def test_level_and_step_of_a_curve_that_bends(start: float, level: float, tau: float) -> None:
    values = level - (level - start) * np.exp(-STEPS / tau) + noise(0.02 * abs(level - start))
    found = predict_convergence(STEPS, values)
    assert found.level == pytest.approx(level, abs=0.05 * abs(level - start))
    assert found.plateau_step == pytest.approx(3.0 * tau, rel=0.15)
    assert found.confidence > 0.9
    assert found.course in (("rising", "settled") if level > start else ("falling", "settled"))


def test_it_agrees_with_scipy() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    values = 0.8 - 0.7 * np.exp(-STEPS / 110.0) + noise(0.03)
    (level, _, tau), _ = optimize.curve_fit(lambda t, a, b, c: a - b * np.exp(-t / c), STEPS, values, p0=(1.0, 1.0, 100.0))
    found = predict_convergence(STEPS, values)
    assert found.level == pytest.approx(level, abs=0.01)
    assert found.plateau_step == pytest.approx(-np.log(0.05) * tau, rel=0.03)


def test_a_straight_line_has_no_level_yet() -> None:
    found = predict_convergence(STEPS, 0.01 * STEPS + noise(0.05))
    assert (found.course, found.remaining, found.plateau_step) == ("rising", 1.0, np.inf)
    assert found.to_dict()["level"] is None


def test_noise_is_flat_and_a_constant_is_settled() -> None:
    courses = [predict_convergence(STEPS, noise(1.0, seed)).course for seed in range(50)]
    assert courses.count("flat") >= 45
    assert predict_convergence(STEPS, np.full(len(STEPS), 3.0)).course == "settled"


def test_too_few_points_and_missing_values() -> None:
    assert predict_convergence([1, 2, 3], [0.0, 1.0, 2.0]).course == "unknown"
    values = 0.8 - 0.7 * np.exp(-STEPS / 110.0) + noise(0.03)
    values[::3] = np.nan
    assert predict_convergence(STEPS, values).level == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize(("shift", "scale"), [(-40.0, 1.0), (0.0, 1000.0)])
def test_it_does_not_depend_on_the_units_of_the_metric(shift: float, scale: float) -> None:
    values = 0.8 - 0.7 * np.exp(-STEPS / 110.0) + noise(0.03)
    plain, changed = predict_convergence(STEPS, values), predict_convergence(STEPS, shift + scale * values)
    assert changed.plateau_step == pytest.approx(plain.plateau_step)
    assert changed.level == pytest.approx(shift + scale * plain.level)


def test_values_that_have_no_square_are_left_out() -> None:
    steps = np.arange(60.0)
    values = np.where(steps % 3 == 0, 1e300, steps / 60)
    kept = steps % 3 != 0
    assert forecast(steps, values, 100.0) == forecast(steps[kept], values[kept], 100.0) is not None


def test_a_reward_that_ends_constant_has_settled_there() -> None:
    values = np.minimum(0.2 + 0.8 * STEPS / 290.0, 1.0)
    found = predict_convergence(STEPS, values)
    assert (found.course, found.level, found.remaining) == ("settled", 1.0, 0.0)
    assert found.plateau_step > 290
    assert predict_convergence(STEPS, 1e-200 * values).course == "settled"


def test_the_last_rows_decide_where_one_curve_does_not_describe_all() -> None:
    rises_and_falls = np.where(STEPS < 200, 0.3 + 0.001 * STEPS, 0.5 - 0.001 * (STEPS - 200)) + noise(0.02)
    assert predict_convergence(STEPS, rises_and_falls).course == "falling"
    expected = forecast(STEPS, rises_and_falls, 800.0)
    assert expected is not None and expected.high < 0.37
    falls_and_rests = np.where(STEPS < 200, 0.7 - 0.002 * STEPS, 0.3) + noise(0.02)
    assert predict_convergence(STEPS, falls_and_rests).level == pytest.approx(0.3, abs=0.02)


def test_a_share_is_not_said_to_settle_beyond_1() -> None:
    found = predict_convergence(STEPS, 1.5 - 1.3 * np.exp(-STEPS / 500.0) + noise(0.002))
    assert (found.course, found.plateau_step) == ("rising", np.inf)
