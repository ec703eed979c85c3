"""Where a series stood a while ago, against the whole series kept in a list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rldk.core.stats import Rest


def by_hand(values: list[float], every: int) -> tuple[float, float] | None:
    """The lower and the higher of the two oldest among the last five readings, from the whole course."""
    readings = values[every - 1 :: every][-5:]
    return (min(readings[:2]), max(readings[:2])) if len(readings) == 5 else None


@given(st.lists(st.floats(-1e6, 1e6), max_size=260))
def test_readings_are_those_of_the_whole_course(values):
    rest = Rest()
    for value in values:
        rest.update(value)
    assert rest.levels() == [pair for pair in (by_hand(values, 25), by_hand(values, 6)) if pair is not None]


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
