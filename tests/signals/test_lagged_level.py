"""Where a series stood a while ago, against the whole series kept in a list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rldk.signals.lagged_level import QUICK, SLOW, LaggedLevel


@given(st.lists(st.floats(-1e6, 1e6), max_size=260), st.booleans())
def test_readings_are_those_of_the_whole_course(values, told_of_all):
    lagged = LaggedLevel()
    for count, value in enumerate(values, 1):
        if told_of_all or count % QUICK == 0 or count % SLOW == 0:
            lagged.read(count, value)
    assert lagged.slow == values[SLOW - 1 :: SLOW][-5:]
    assert lagged.quick == values[QUICK - 1 :: QUICK][-5:]


def test_what_is_missing_is_no_reading_and_a_row_is_read_once():
    lagged = LaggedLevel()
    for count in range(1, 201):
        lagged.read(count, float("nan"))
    assert lagged.slow == lagged.quick == []
    for _ in range(10):
        lagged.read(6, 1.0)
    assert lagged.quick == [1.0]
