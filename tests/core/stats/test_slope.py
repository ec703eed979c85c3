"""The line through a window against numpy and scipy on the same values."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.stats import RollingSlope

pytestmark = pytest.mark.full
scipy_stats = pytest.importorskip("scipy.stats")

streams = st.lists(st.floats(-1e3, 1e3).map(lambda x: round(x, 3)) | st.just(math.nan) | st.just(-math.inf), max_size=60)
eighths = st.integers(-800, 800).map(lambda whole: whole / 8)


@settings(max_examples=100, deadline=None)
@given(values=streams, window=st.integers(3, 12), offset=st.sampled_from([0.0, 1e6, -1e8]))
def test_slope_matches_scipy_over_the_last_finite_values(values: list[float], window: int, offset: float) -> None:
    rolling = RollingSlope(window)
    seen: list[float] = []
    for value in values:
        rolling.update(value + offset)
        seen += [value + offset] if math.isfinite(value) else []
        ys = np.array(seen[-window:])
        _, spread, slope, t, rise = rolling.line()
        if len(ys) < 2:
            assert math.isnan(slope)
            continue
        xs = np.arange(float(len(ys)))
        resolution = (1e-9 + 1e-14 * abs(offset)) * max(1.0, np.std(ys) / np.std(xs))
        assert slope == pytest.approx(scipy_stats.linregress(xs, ys).slope, rel=1e-9, abs=resolution)
        if len(ys) < 3:
            assert math.isnan(spread)
            assert math.isnan(t)
        else:
            assert rise == slope * (len(ys) - 1)


@settings(max_examples=100, deadline=None)
@given(values=st.lists(eighths, min_size=3, max_size=60), window=st.integers(3, 12))
def test_spread_and_t_are_those_of_least_squares(values: list[float], window: int) -> None:
    rolling = RollingSlope(window)
    for value in values:
        rolling.update(value)
    mean, spread, slope, t, _ = rolling.line()
    seen = np.array(values[-window:])
    x = np.arange(len(seen))
    residuals = seen - np.polyval(np.polyfit(x, seen, 1), x)
    deviation = math.sqrt(float(residuals @ residuals) / (len(seen) - 2))
    assert mean == pytest.approx(seen.mean(), abs=1e-9)
    assert spread == pytest.approx(deviation, abs=1e-6)
    if deviation > 1e-3:
        assert t == pytest.approx(slope / (deviation / math.sqrt(float(((x - x.mean()) ** 2).sum()))), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("window", [3, 50, 201])
def test_does_not_drift_on_a_large_offset(window: int) -> None:
    rng = random.Random(0)
    values = [1e8 + 0.01 * step + rng.gauss(0.0, 1.0) for step in range(100_000)]
    rolling = RollingSlope(window)
    for value in values:
        rolling.update(value)
    expected = scipy_stats.linregress(np.arange(window), np.array(values[-window:]) - 1e8)
    _, _, slope, t, _ = rolling.line()
    assert slope == pytest.approx(expected.slope, rel=1e-5)
    assert slope / t == pytest.approx(expected.stderr, rel=1e-5)


def test_a_spike_leaves_nothing_behind() -> None:
    rng = random.Random(1)
    values = [rng.gauss(1.0, 0.1) for _ in range(40)]
    rolling = RollingSlope(20)
    for value in [*values[:20], 1e12, *values[20:]]:
        rolling.update(value)
    expected = scipy_stats.linregress(np.arange(20), values[20:])
    _, _, slope, t, _ = rolling.line()
    assert (slope, slope / t) == pytest.approx((expected.slope, expected.stderr), rel=1e-9)


def test_constant_and_exact_lines() -> None:
    constant, line = RollingSlope(5), RollingSlope(5)
    for position in range(12):
        constant.update(0.1)
        line.update(-2.0 * position)
    assert constant.line() == (0.1, 0.0, 0.0, 0.0, 0.0)
    assert line.line() == (-18.0, 0.0, -2.0, -math.inf, -8.0)


def test_an_empty_window_has_no_line() -> None:
    assert all(math.isnan(value) for value in RollingSlope(5).line())
