"""Rolling mean and variance against numpy on the same window."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.stats import RollingSlope


@settings(max_examples=100, deadline=None)
@given(
    values=st.lists(st.floats(-1e3, 1e3) | st.just(math.nan) | st.just(math.inf), max_size=80),
    window=st.integers(2, 12),
    offset=st.sampled_from([0.0, 1.0, -1e5, 1e8]),
)
def test_matches_numpy_over_the_last_finite_values(values: list[float], window: int, offset: float) -> None:
    moments = RollingSlope(window)
    seen: list[float] = []
    for value in values:
        moments.update(value + offset)
        seen += [value + offset] if math.isfinite(value) else []
        last = np.array(seen[-window:])
        assert moments.count == len(last)
        if len(last) == 0:
            assert math.isnan(moments.mean)
        else:
            assert moments.mean == pytest.approx(last.mean(), rel=1e-12, abs=1e-9)
        if len(last) < 2:
            assert math.isnan(moments.std)
        else:
            assert moments.std**2 == pytest.approx(last.var(ddof=1), rel=1e-9, abs=1e-9 + abs(offset) * 1e-12)


def test_does_not_drift_over_a_million_updates_on_a_large_offset() -> None:
    rng = random.Random(0)
    values = [1e8 + rng.gauss(0.0, 1.0) for _ in range(50_003)]
    moments = RollingSlope(50)
    for _ in range(20):
        for value in values:
            moments.update(value)
    last = np.array(values[-50:])
    assert moments.mean == pytest.approx(last.mean(), rel=1e-14)
    assert moments.std**2 == pytest.approx(last.var(ddof=1), rel=1e-6)


@pytest.mark.parametrize("spike", [1e3, 1e8, 1e16, 1e100, 1e308])
def test_a_spike_leaves_nothing_behind(spike: float) -> None:
    rng = random.Random(1)
    moments = RollingSlope(20)
    values = [rng.gauss(1.0, 0.1) for _ in range(61)]
    for value in [*values[:30], spike, *values[30:50]]:
        moments.update(value)
    for position in range(50, 61):
        last = np.array(values[position - 20 : position])
        assert moments.mean == pytest.approx(last.mean(), rel=1e-12)
        assert moments.std**2 == pytest.approx(last.var(ddof=1), rel=1e-10)
        moments.update(values[position])


@settings(max_examples=100, deadline=None)
@given(value=st.floats(-10, 10), window=st.integers(2, 30))
def test_noise_that_stops_leaves_a_spread_of_exactly_zero(value: float, window: int) -> None:
    rng = random.Random(2)
    moments = RollingSlope(window)
    for next_value in [*(rng.gauss(0.0, 1.0) for _ in range(25)), *[value] * window]:
        moments.update(next_value)
    assert (moments.mean, moments.std) == (value, 0.0)


def test_recovers_where_the_sum_of_squares_overflows_and_no_square_does() -> None:
    moments = RollingSlope(8)
    for value in (6e153, -6e153) * 4:
        moments.update(value)
    assert moments.std == math.inf
    for value in range(8):
        moments.update(value)
    assert moments.std**2 == pytest.approx(6.0)


def test_the_mean_survives_where_sums_overflow() -> None:
    moments = RollingSlope(4)
    for value in (1.7e308, 1.7e308, -1.7e308, 1.7e308, 1.7e308):
        moments.update(value)
    assert moments.mean == pytest.approx(0.85e308)
    assert moments.std == math.inf
