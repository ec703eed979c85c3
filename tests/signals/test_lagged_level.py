"""Where a series stood a while ago, against the whole series kept in a list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rldk.signals.lagged_level import QUICK, SLOW, LaggedLevel


def by_hand(values: list[float], every: int) -> tuple[float, float] | None:
    """The lower and the higher of the two oldest among the last five readings, from the whole course."""
    readings = values[every - 1 :: every][-5:]
    return (min(readings[:2]), max(readings[:2])) if len(readings) == 5 else None


@given(st.lists(st.floats(-1e6, 1e6), max_size=260), st.booleans())
def test_readings_are_those_of_the_whole_course(values, told_of_all):
    rest = LaggedLevel()
    for count, value in enumerate(values, 1):
        if told_of_all or count % QUICK == 0 or count % SLOW == 0:
            rest.read(count, value)
    assert rest.levels() == [pair for pair in (by_hand(values, 25), by_hand(values, 6)) if pair is not None]


def test_a_short_series_has_no_past():
    rest = LaggedLevel()
    for count in range(1, 30):
        rest.read(count, float(count))
    assert rest.levels() == []
    rest.read(30, 30.0)
    assert rest.levels() == [(6.0, 12.0)]
    assert rest.before() == 6.0


def test_what_is_missing_is_no_reading_and_a_row_is_read_once():
    rest = LaggedLevel()
    for count in range(1, 201):
        rest.read(count, float("nan"))
    assert rest.levels() == []
    for _ in range(10):
        rest.read(6, 1.0)
    assert rest.quick == [1.0]
