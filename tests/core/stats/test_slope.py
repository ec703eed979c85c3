"""Rolling slopes against scipy's linregress on the same window."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.stats import RollingRegression, RollingSlope

pytestmark = pytest.mark.full
scipy_stats = pytest.importorskip("scipy.stats")

streams = st.lists(st.floats(-1e3, 1e3).map(lambda x: round(x, 3)) | st.just(math.nan) | st.just(-math.inf), max_size=60)


def assert_fits(fit: tuple[float, float, float], xs: np.ndarray, ys: np.ndarray, offset: float) -> None:
    slope, stderr, t = fit
    if len(xs) < 2:
        assert math.isnan(slope)
        return
    expected = scipy_stats.linregress(xs, ys)
    resolution = (1e-9 + 1e-14 * abs(offset)) * max(1.0, np.std(ys) / np.std(xs))
    assert slope == pytest.approx(expected.slope, rel=1e-9, abs=resolution)
    if len(xs) < 3:
        assert math.isnan(stderr)
        assert math.isnan(t)
        return
    if np.ptp(ys) == 0:
        assert fit == (0.0, 0.0, 0.0)
        return
    assert stderr == pytest.approx(expected.stderr, rel=1e-6, abs=resolution + 1e-6 * np.std(ys) / np.std(xs))
    if stderr > 0:
        assert t == slope / stderr


@settings(max_examples=100, deadline=None)
@given(values=streams, window=st.integers(3, 12), offset=st.sampled_from([0.0, 1e6, -1e8]))
def test_slope_matches_scipy_over_the_last_finite_values(values: list[float], window: int, offset: float) -> None:
    rolling = RollingSlope(window)
    seen: list[float] = []
    for value in values:
        rolling.update(value + offset)
        seen += [value + offset] if math.isfinite(value) else []
        ys = np.array(seen[-window:])
        assert_fits(rolling.fit(), np.arange(float(len(ys))), ys, offset)
        assert repr((rolling.slope, rolling.stderr, rolling.t)) == repr(rolling.fit())


@settings(max_examples=60, deadline=None)
@given(values=streams, window=st.integers(3, 12), seed=st.integers(0, 99), offset=st.sampled_from([0.0, 1e6]))
def test_regression_matches_scipy(values: list[float], window: int, seed: int, offset: float) -> None:
    rng = random.Random(seed)
    rolling = RollingRegression(window)
    xs: list[float] = []
    ys: list[float] = []
    step = offset
    for value in values:
        step += rng.choice([1.0, 2.0, 10.0])
        rolling.update(step, value)
        if math.isfinite(value):
            xs.append(step)
            ys.append(value)
        assert_fits(rolling.fit(), np.array(xs[-window:]), np.array(ys[-window:]), 0.0)
        assert repr((rolling.slope, rolling.stderr, rolling.t)) == repr(rolling.fit())


@pytest.mark.parametrize("window", [3, 50, 201])
def test_does_not_drift_on_a_large_offset(window: int) -> None:
    rng = random.Random(0)
    values = [1e8 + 0.01 * step + rng.gauss(0.0, 1.0) for step in range(100_000)]
    slope, regression = RollingSlope(window), RollingRegression(window)
    for step, value in enumerate(values):
        slope.update(value)
        regression.update(float(step), value)
    expected = scipy_stats.linregress(np.arange(window), np.array(values[-window:]) - 1e8)
    for fit in (slope.fit(), regression.fit()):
        assert fit[0] == pytest.approx(expected.slope, rel=1e-5)
        assert fit[1] == pytest.approx(expected.stderr, rel=1e-5)


def test_a_spike_leaves_nothing_behind() -> None:
    rng = random.Random(1)
    values = [rng.gauss(1.0, 0.1) for _ in range(40)]
    slope, regression = RollingSlope(20), RollingRegression(20)
    for step, value in enumerate([*values[:20], 1e12, *values[20:]]):
        slope.update(value)
        regression.update(float(step), value)
    expected = scipy_stats.linregress(np.arange(20), values[20:])
    for fit in (slope.fit(), regression.fit()):
        assert fit[:2] == pytest.approx((expected.slope, expected.stderr), rel=1e-9)


def test_constant_and_exact_lines() -> None:
    constant, line, vertical = RollingSlope(5), RollingSlope(5), RollingRegression(5)
    for position in range(12):
        constant.update(0.1)
        line.update(-2.0 * position)
        vertical.update(3.0, position)
    assert constant.fit() == (0.0, 0.0, 0.0)
    assert line.fit() == (-2.0, 0.0, -math.inf)
    assert all(map(math.isnan, vertical.fit()))
