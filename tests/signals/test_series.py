"""What a series knows of itself, against the whole course in a list."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldk.signals.series import Series

VALUES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, -3.0, 0.3, 1e6, 1e-7]), min_size=1, max_size=120)
COURSE = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=120)


def series_of(values: list[float]) -> Series:
    series = Series()
    for index, value in enumerate(values):
        series.update(value, index)
    return series


def alike(before: float, after: float) -> bool:
    return abs(after - before) <= 1e-6 * abs(after)


@given(VALUES)
def test_how_often_values_repeat(values):
    series = series_of(values)
    pairs = [alike(before, after) for before, after in pairwise(values)]
    same = 1
    while same <= len(pairs) and pairs[-same]:
        same += 1
    assert (series.same, series.repeats) == (same, sum(pairs))


@given(VALUES)
def test_the_chance_of_so_many_equal_values(values):
    series = series_of(values)
    before = len(values) - series.same
    if before < 1:
        assert series.sameness == 1.0
        return
    repeated = sum(alike(first, second) for first, second in pairwise(values[: before + 1]))
    usual = min(max((repeated + 0.5) / (before + 1.0), 0.05), 0.999)
    assert series.sameness == pytest.approx(usual ** (series.same - 1))


def test_a_run_of_equal_values_is_likely_where_values_repeat_and_unlikely_where_they_do_not():
    assert series_of([0.0, 1.0, 0.0, 0.0, 1.0, 1.0] * 5 + [0.0] * 6).sameness > 1e-3
    assert series_of([0.31, 0.5, 0.42, 0.38, 0.29] * 5 + [0.0] * 6).sameness < 1e-4


@given(COURSE)
def test_noise_against_a_loop(values):
    series = series_of(values)
    roughness = float("nan")
    for n in range(2, len(values) + 1):
        step = abs(values[n - 1] - values[n - 2])
        roughness = step if n == 2 else roughness + 0.1 * (step - roughness)
    if len(values) > 1:
        assert series.noise == pytest.approx(0.886 * roughness)


@given(COURSE)
def test_level_start_and_extremes_against_the_whole_course(values):
    series = series_of(values)
    levels = [median(values[end - 5 : end]) for end in range(5, len(values) + 1)]
    if levels:
        assert (series.level, series.start, series.high, series.low) == (levels[-1], levels[0], max(levels), min(levels))
    assert (series.n, series.first, series.last) == (len(values), values[0], values[-1])


@given(VALUES, st.sampled_from([0.0, 1e-6, 0.5]))
def test_a_series_that_stays_within_a_limit_has_no_level_beyond_it(values, limit):
    levels = [sorted(values[max(end - 5, 0) : end])[len(values[max(end - 5, 0) : end]) // 2] for end in range(1, len(values) + 1)]
    seen = [values[0], values[-1], *(levels[4:] or levels[-1:])]
    assert series_of(values).stays_within(limit) == all(abs(value) <= limit for value in seen)


def test_a_series_without_values_stays_nowhere():
    assert not Series().stays_within(1.0)
