"""Where a series stood a while ago, against the whole series kept in a list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldk.core.stats import Rest


def by_hand(values: list[float], weight: float, every: int) -> tuple[float, float] | None:
    """The two oldest of the last five readings, from the whole course of the smoothed series."""
    course: list[float] = []
    for value in values:
        course.append(value if not course else (1.0 - weight) * course[-1] + weight * value)
    readings = course[every - 1 :: every][-5:]
    return (min(readings[:2]), max(readings[:2])) if len(readings) == 5 else None


@given(st.lists(st.floats(-1e6, 1e6), max_size=260), st.sampled_from([1.0, 0.1]))
def test_readings_are_those_of_the_whole_course(values, weight):
    rest = Rest(weight)
    for value in values:
        rest.update(value)
    slow, quick = by_hand(values, weight, 25), by_hand(values, weight, 6)
    expected = [pair for pair in (slow, quick) if pair is not None]
    assert rest.levels() == [pytest.approx(pair) for pair in expected]


def test_a_short_series_has_no_past():
    rest = Rest()
    for value in range(29):
        rest.update(float(value))
    assert rest.levels() == []
    assert rest.update(29.0)
    assert rest.levels() == [(5.0, 11.0)]
    assert not rest.update(30.0)


def test_what_is_missing_is_no_reading():
    rest = Rest()
    for _ in range(200):
        rest.update(float("nan"))
    assert rest.levels() == []
    assert rest.missing == 200
