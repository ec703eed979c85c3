"""Moments of the entire past against numpy."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.stats import RunningMoments


@settings(max_examples=100, deadline=None)
@given(
    values=st.lists(st.integers(-1000, 1000).map(lambda whole: whole / 8) | st.just(math.nan), max_size=60),
    offset=st.sampled_from([0.0, -1e4, 1e8]),
)
def test_matches_numpy(values: list[float], offset: float) -> None:
    moments = RunningMoments()
    for value in values:
        moments.update(value + offset)
    seen = np.array([value + offset for value in values if value == value])
    assert moments.count == len(seen)
    if len(seen) < 2:
        assert math.isnan(moments.variance)
        return
    assert (moments.min, moments.max) == (seen.min(), seen.max())
    assert moments.mean == pytest.approx(seen.mean(), rel=1e-14, abs=1e-12)
    assert moments.variance == pytest.approx(seen.var(ddof=1), rel=1e-6)
    assert moments.std == math.sqrt(moments.variance)


def test_is_stable_over_a_long_stream_on_a_large_offset() -> None:
    rng = random.Random(0)
    deviations = [rng.expovariate(1.0) for _ in range(100_000)]
    moments = RunningMoments()
    for deviation in deviations:
        moments.update(1e8 + deviation)
    exact = np.array(deviations)
    assert moments.variance == pytest.approx(exact.var(ddof=1), rel=1e-6)


def test_overflow_costs_the_variance_and_nothing_else() -> None:
    moments = RunningMoments()
    for value in (-1.7e308, 1.7e308, 1.0):
        moments.update(value)
    assert moments.mean == pytest.approx(1.0 / 3.0, abs=1e293)
    assert (moments.min, moments.max, moments.variance) == (-1.7e308, 1.7e308, math.inf)
