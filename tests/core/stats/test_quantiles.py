"""Rolling order statistics against numpy on the same window."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.stats import RollingQuantiles

values_with_ties = st.lists(
    st.floats(-1e9, 1e9) | st.sampled_from([0.0, -0.0, 1.0, 0.1, 2.5]) | st.just(math.nan) | st.just(math.inf),
    max_size=60,
)


@settings(max_examples=100, deadline=None)
@given(values=values_with_ties, window=st.integers(1, 12), q=st.floats(0.0, 1.0))
def test_matches_numpy_over_the_last_finite_values(values: list[float], window: int, q: float) -> None:
    rolling = RollingQuantiles(window)
    seen: list[float] = []
    for value in values:
        rolling.update(value)
        seen += [value] if math.isfinite(value) else []
        assert rolling.values == seen[-window:]
        if not seen:
            assert math.isnan(rolling.median)
            assert math.isnan(rolling.mad)
            assert math.isnan(rolling.quantile(q))
            continue
        last = np.array(seen[-window:])
        median = float(np.median(last))
        mad = float(np.median(np.abs(last - median)))
        assert (rolling.count, rolling.min, rolling.max) == (len(last), last.min(), last.max())
        assert (rolling.median, rolling.mad) == (median, mad), "exact, not near"
        assert rolling.location_scale() == (median, 1.4826 * mad)
        assert rolling.quantile(q) == pytest.approx(float(np.quantile(last, q)), rel=1e-12, abs=1e-300)


def test_large_windows_too() -> None:
    rng = np.random.default_rng(0)
    stream = rng.standard_cauchy(3000)
    rolling = RollingQuantiles(501)
    for position, value in enumerate(stream, 1):
        rolling.update(value)
        if position % 97 == 0:
            last = stream[max(0, position - 501) : position]
            assert rolling.mad == np.median(np.abs(last - np.median(last)))


def test_halves_do_not_overflow_or_vanish() -> None:
    rolling = RollingQuantiles(2)
    for value in (1.7e308, 1.7e308):
        rolling.update(value)
    assert (rolling.median, rolling.quantile(0.5), rolling.mad) == (1.7e308, 1.7e308, 0.0)
    rolling.update(-1.7e308)
    assert (rolling.median, rolling.quantile(0.5), rolling.quantile(0.0)) == (0.0, 0.0, -1.7e308)
    for value in (5e-324, 5e-324):
        rolling.update(value)
    assert rolling.median == 5e-324
