"""The two-sided CUSUM against its definition, and where it fires."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.stats import Cusum


def shifted(by: float, at: int = 100, count: int = 200) -> list[float]:
    rng = random.Random(0)
    return [rng.gauss(by if step >= at else 0.0, 1.0) for step in range(count)]


def first_detection(cusum: Cusum, values: list[float]) -> int | None:
    for step, value in enumerate(values):
        cusum.update(value)
        if cusum.detected:
            return step
    return None


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-10, 10), max_size=60))
def test_follows_its_definition(values: list[float]) -> None:
    cusum = Cusum(drift=0.5, threshold=4.0, location=1.0, scale=2.0)
    for stop in range(1, len(values) + 1):
        cusum.update(values[stop - 1])
        z = [(value - 1.0) / 2.0 for value in values[:stop]]
        # the largest sum over any stretch that ends now: the other way to say max(0, high + z - drift)
        high = max([0.0, *(sum(z[start:]) - 0.5 * (stop - start) for start in range(stop))])
        low = max([0.0, *(-sum(z[start:]) - 0.5 * (stop - start) for start in range(stop))])
        assert (cusum.high, cusum.low) == (pytest.approx(high, abs=1e-9), pytest.approx(low, abs=1e-9))
        assert cusum.detected == (cusum.high > 4.0 or cusum.low > 4.0)


@pytest.mark.parametrize(("by", "index", "direction"), [(1.0, 110, 1), (-1.0, 109, -1), (2.0, 104, 1), (0.0, None, 0)])
def test_fires_soon_after_a_shift_and_says_since_when(by: float, index: int | None, direction: int) -> None:
    cusum = Cusum(drift=0.5, threshold=6.0)
    assert first_detection(cusum, shifted(by)) == index
    assert cusum.direction == direction
    if index is None:
        assert cusum.since is None
    else:
        assert cusum.since == pytest.approx(100, abs=4)


def test_since_counts_the_updates_left_out() -> None:
    cusum = Cusum(drift=0.5, threshold=4.0)
    for value in (math.nan, 0.0, math.inf, 3.0, math.nan, 3.0):
        cusum.update(value)
    assert (cusum.detected, cusum.since) == (True, 3)


def test_location_and_scale_can_come_with_the_value() -> None:
    fixed, given_ = Cusum(location=10.0, scale=3.0), Cusum()
    for value in (9.0, 14.0, 20.0):
        fixed.update(value)
        given_.update(value, 10.0, 3.0)
    assert (fixed.high, fixed.low) == (given_.high, given_.low)
    for location, scale in ((math.nan, 1.0), (0.0, math.nan), (0.0, 0.0), (0.0, -1.0), (0.0, math.inf)):
        given_.update(1e9, location, scale)
    assert (given_.high, given_.missing) == (fixed.high, 5)


def test_clip_keeps_a_single_spike_from_raising_it() -> None:
    spike = [0.0] * 10 + [1e308] + [0.0] * 10
    assert first_detection(Cusum(drift=0.5, threshold=5.0), spike) == 10
    assert first_detection(Cusum(drift=0.5, threshold=5.0, clip=4.0), spike) is None
    assert first_detection(Cusum(drift=0.5, threshold=5.0, clip=4.0), [0.0, -9.0, -9.0]) == 2


def test_clears_when_the_values_come_back() -> None:
    cusum = Cusum(drift=0.5, threshold=5.0)
    for value in [2.0] * 5:
        cusum.update(value)
    assert cusum.detected
    for value in [0.0] * 5:
        cusum.update(value)
    assert not cusum.detected
    assert cusum.since is None
