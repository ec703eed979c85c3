"""The line through a window, and shares, against numpy and counting."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.judge.trackers.trend import RollingShare, Trend

eighths = st.integers(-800, 800).map(lambda whole: whole / 8)


@settings(max_examples=100, deadline=None)
@given(values=st.lists(eighths, min_size=1, max_size=60), window=st.integers(3, 12))
def test_the_line_is_that_of_least_squares(values: list[float], window: int) -> None:
    trend = Trend(window)
    for value in values:
        trend.add(value)
    mean, spread, slope, t, rise = trend.line()
    seen = np.array(values[-window:])
    assert mean == pytest.approx(seen.mean(), abs=1e-9)
    if len(seen) < 3:
        assert math.isnan(spread)
        assert math.isnan(t)
        return
    x = np.arange(len(seen))
    expected, offset = np.polyfit(x, seen, 1)
    residuals = seen - expected * x - offset
    deviation = math.sqrt(float(residuals @ residuals) / (len(seen) - 2))
    assert slope == pytest.approx(expected, abs=1e-9)
    assert rise == pytest.approx(expected * (len(seen) - 1), abs=1e-9)
    assert spread == pytest.approx(deviation, abs=1e-6)
    if deviation > 1e-3:
        assert t == pytest.approx(expected / (deviation / math.sqrt(float(((x - x.mean()) ** 2).sum()))), rel=1e-6, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(values=st.lists(st.floats(-1e9, 1e9), max_size=80), window=st.integers(3, 9), asked=st.sets(st.integers(0, 80)))
def test_the_line_does_not_depend_on_when_it_was_asked_for(values: list[float], window: int, asked: set[int]) -> None:
    often, once = Trend(window), Trend(window)
    for number, value in enumerate(values):
        often.add(value)
        once.add(value)
        if number in asked:
            often.line()
    assert often.state_dict() == once.state_dict()
    assert np.array_equal(often.line(), once.line(), equal_nan=True)


def test_an_empty_window_has_no_line() -> None:
    assert all(math.isnan(value) for value in Trend(5).line())


def test_a_constant_has_neither_slope_nor_spread() -> None:
    trend = Trend(5)
    for _ in range(9):
        trend.add(0.1)
    assert trend.line() == (0.1, 0.0, 0.0, 0.0, 0.0)


@given(conditions=st.lists(st.booleans(), max_size=40), window=st.integers(1, 9))
def test_share_is_that_of_the_window(conditions: list[bool], window: int) -> None:
    share = RollingShare(window)
    for condition in conditions:
        share.update(condition)
    seen = conditions[-window:]
    assert share.count == len(seen)
    assert math.isnan(share.share) if not seen else share.share == sum(seen) / len(seen)
