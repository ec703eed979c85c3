"""Fewer points keep every extreme and every gap; the pyramid of a growing column gives what a plain loop gives."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.errors import UsageError
from rldk.present.plots.downsample import Pyramid, bucket_size, keep_extremes, pick_extremes

VALUES = st.lists(st.one_of(st.floats(allow_nan=True, allow_infinity=True, width=32), st.just(math.nan)), max_size=700)


def extremes(values: list[float]) -> tuple[float | None, float | None, bool]:
    """Lowest, highest, and whether something is not finite, by a plain loop."""
    finite = [value for value in values if math.isfinite(value)]
    return min(finite, default=None), max(finite, default=None), len(finite) < len(values)


@settings(deadline=None)
@given(VALUES, st.integers(1, 60))
def test_every_bucket_keeps_its_extremes_and_its_gap(values: list[float], buckets: int) -> None:
    size = bucket_size(len(values), buckets)
    kept = pick_extremes(np.array(values), size).tolist()
    assert kept == sorted(set(kept))
    for start in range(0, len(values), size):
        bucket = values[start : start + size]
        assert extremes([values[place] for place in kept if start <= place < start + size]) == extremes(bucket)
    if values:
        assert kept[0] == 0 and kept[-1] == len(values) - 1
    assert len(kept) <= 3 * buckets + 2


@settings(deadline=None)
@given(VALUES, st.integers(1, 60))
def test_columns_that_belong_together_keep_the_extremes_of_each(values: list[float], buckets: int) -> None:
    column = np.array(values)
    other = column[::-1].copy()
    kept = keep_extremes([column, other], buckets)
    size = bucket_size(len(values), buckets)
    for start in range(0, len(values), size):
        inside = kept[(kept >= start) & (kept < start + size)]
        for one in (column, other):
            assert extremes(one[inside].tolist()) == extremes(one[start : start + size].tolist())


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 3000), st.integers(0, 2**32 - 1), st.lists(st.integers(1, 700), max_size=12), st.integers(1, 80),
    st.floats(0, 1), st.floats(0, 1),
)  # fmt: skip
def test_a_pyramid_filled_in_pieces_keeps_the_extremes_of_what_is_asked_for(
    rows: int, seed: int, cuts: list[int], buckets: int, low: float, high: float
) -> None:
    chance = np.random.default_rng(seed)
    values = np.round(chance.standard_cauchy(rows), 2)
    values[chance.random(rows) < 0.02] = np.nan
    values[chance.random(rows) < 0.01] = np.inf
    pyramid, place = Pyramid(), 0
    for cut in [*cuts, rows]:
        pyramid.extend(values[place : place + cut])
        place = min(rows, place + cut)
    pyramid.extend(values[place:])
    assert np.array_equal(pyramid.values, values, equal_nan=True)
    start, stop = sorted((round(low * rows), round(high * rows)))
    kept = pyramid.pick(buckets, start, stop)
    assert kept.tolist() == sorted(set(kept.tolist())) and all(start <= place < stop for place in kept)
    assert extremes(values[kept].tolist()) == extremes(values[start:stop].tolist())
    assert stop == start or {start, stop - 1} <= set(kept.tolist())
    size = bucket_size(max(1, stop - start), buckets)
    for row in range(start, stop):  # less than a bucket away there is one as high, one as low, or a gap like it
        near = values[kept[(kept > row - size) & (kept < row + size)]]
        if math.isfinite(values[row]):
            near = near[np.isfinite(near)]
            assert len(near) and near.max() >= values[row] >= near.min()
        else:
            assert (~np.isfinite(near)).any()


@pytest.mark.parametrize("value", [9.0, np.nan])
@pytest.mark.parametrize(("start", "stop", "buckets"), [(0, 600, 12), (7, 595, 12), (3, 591, 2), (33, 47, 2)])
def test_a_single_row_is_kept_wherever_it_stands(value: float, start: int, stop: int, buckets: int) -> None:
    for row in range(start, stop):
        pyramid = Pyramid()
        values = np.zeros(600)
        values[row] = value
        pyramid.extend(values)
        assert row in pyramid.pick(buckets, start, stop)


def test_a_pyramid_keeps_the_extremes_of_every_block() -> None:
    values = np.random.default_rng(3).standard_normal(100_000)
    pyramid = Pyramid()
    pyramid.extend(values)
    kept = pyramid.pick(300)
    block = 256  # the level that 100 000 rows in 300 buckets are drawn from
    for start in range(0, len(values) - block, block):
        inside = values[start : start + block]
        assert start + inside.argmin() in kept and start + inside.argmax() in kept
    assert len(kept) < 1000


def test_a_spike_of_one_row_in_a_million_is_kept_and_picking_does_not_touch_the_rows() -> None:
    values = np.zeros(1_000_000)
    values[765_432] = 9.0
    values[123_457] = np.nan
    tracemalloc.start()
    pyramid = Pyramid(np.float32)
    for start in range(0, len(values), 100_000):
        pyramid.extend(values[start : start + 100_000])
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    kept = pyramid.pick(500)
    assert 765_432 in kept and 123_457 in kept and len(kept) < 2000
    assert held < 10 * len(values)
    zoomed = pyramid.pick(500, 765_000, 765_500)
    assert zoomed.tolist() == list(range(765_000, 765_500))  # zooming in brings every row back


def test_no_buckets_are_refused() -> None:
    with pytest.raises(UsageError, match="at least 1 bucket"):
        pick_extremes(np.zeros(3), bucket_size(3, 0))
