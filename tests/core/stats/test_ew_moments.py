"""Exponentially weighted moments against pandas."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.stats import EwMoments

pytestmark = pytest.mark.full
pd = pytest.importorskip("pandas")


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.floats(-1e3, 1e3) | st.just(math.nan), min_size=1, max_size=60),
    halflife=st.sampled_from([0.3, 1, 7.5, 200]),
    offset=st.sampled_from([0.0, 1e6]),
)
def test_matches_pandas_at_every_step(values: list[float], halflife: float, offset: float) -> None:
    series = pd.Series(values) + offset
    window = series.ewm(halflife=halflife, adjust=True, ignore_na=True)
    moments = EwMoments(halflife=halflife)
    for value, mean, variance in zip(series, window.mean(), window.var(bias=True), strict=True):
        moments.update(value)
        assert moments.mean == pytest.approx(mean, rel=1e-12, abs=1e-9, nan_ok=True)
        assert moments.variance == pytest.approx(variance, rel=1e-8, abs=1e-6 if offset else 1e-9, nan_ok=True)
        assert moments.std == pytest.approx(math.sqrt(moments.variance), nan_ok=True)


def test_the_first_value_is_the_mean_and_has_no_variance() -> None:
    moments = EwMoments(halflife=100)
    moments.update(5.0)
    assert (moments.mean, moments.variance, moments.weight) == (5.0, 0.0, 1.0)


def test_a_value_counts_half_after_a_halflife() -> None:
    moments = EwMoments(halflife=10)
    moments.update(1.0)
    for _ in range(10):
        moments.update(0.0)
    assert moments.mean * moments.weight == pytest.approx(0.5)


def test_an_overflow_decays() -> None:
    moments = EwMoments(halflife=0.5)
    for value in (1.7e308, -1.7e308, *[1.0] * 2000):
        moments.update(value)
    assert (moments.mean, moments.variance) == (1.0, pytest.approx(0.0, abs=1e-9))
