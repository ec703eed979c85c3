"""Slope and correlation of pairs against numpy and scipy on the same window."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.errors import UsageError
from rldk.core.stats import RollingPairs, rank_correlation

pytestmark = pytest.mark.full
scipy_stats = pytest.importorskip("scipy.stats")

eighths = st.integers(-500, 500).map(lambda whole: whole / 8)
streams = st.lists(st.floats(-1e3, 1e3).map(lambda x: round(x, 3)) | st.just(math.nan) | st.just(-math.inf), max_size=60)
holes = st.sampled_from([math.nan, math.inf])
pairs = st.lists(st.tuples(eighths | holes, eighths | holes), max_size=60)


@settings(max_examples=100, deadline=None)
@given(pairs=pairs, window=st.integers(3, 12), offset=st.sampled_from([0.0, 1e6]))
def test_matches_numpy_over_the_last_whole_pairs(pairs: list[tuple[float, float]], window: int, offset: float) -> None:
    rolling = RollingPairs(window)
    seen: list[tuple[float, float]] = []
    for x, y in pairs:
        rolling.update(x + offset, y)
        seen += [(x, y)] if math.isfinite(x) and math.isfinite(y) else []
        xs, ys = np.array(seen[-window:]).reshape(-1, 2).T
        assert rolling.count == len(xs)
        assert rolling.mean_x == pytest.approx(np.mean(xs) + offset if len(xs) else math.nan, nan_ok=True)
        if len(xs) < 2 or np.ptp(xs) == 0 or np.ptp(ys) == 0:
            assert math.isnan(rolling.correlation)
            assert math.isnan(rolling.rank_correlation)
        else:
            assert rolling.correlation == pytest.approx(np.corrcoef(xs, ys)[0, 1], abs=1e-7)
            assert rolling.rank_correlation == rank_correlation(xs, ys)


@settings(max_examples=60, deadline=None)
@given(values=streams, window=st.integers(3, 12), seed=st.integers(0, 99), offset=st.sampled_from([0.0, 1e6]))
def test_slope_matches_scipy(values: list[float], window: int, seed: int, offset: float) -> None:
    rng = random.Random(seed)
    rolling = RollingPairs(window)
    xs: list[float] = []
    ys: list[float] = []
    step = offset
    for value in values:
        step += rng.choice([1.0, 2.0, 10.0])
        rolling.update(step, value)
        if math.isfinite(value):
            xs.append(step)
            ys.append(value)
        x, y = np.array(xs[-window:]), np.array(ys[-window:])
        if len(x) < 2:
            assert math.isnan(rolling.slope)
        else:
            resolution = 1e-9 * max(1.0, np.std(y) / np.std(x))
            assert rolling.slope == pytest.approx(scipy_stats.linregress(x, y).slope, rel=1e-9, abs=resolution)


def test_a_vertical_line_has_no_slope() -> None:
    vertical = RollingPairs(5)
    for position in range(12):
        vertical.update(3.0, position)
    assert math.isnan(vertical.slope)


def test_does_not_drift_and_forgets_spikes() -> None:
    rng = random.Random(0)
    xs = [1e8 + rng.gauss(0.0, 1.0) for _ in range(100_000)]
    ys = [x - 1e8 + rng.gauss(0.0, 1.0) for x in xs]
    rolling = RollingPairs(50)
    for step, (x, y) in enumerate(zip(xs, ys, strict=True)):
        rolling.update(x, 1e12 if step == 99_949 else y)
    assert rolling.correlation == pytest.approx(np.corrcoef(np.array(xs[-50:]) - 1e8, ys[-50:])[0, 1], abs=1e-6)


def test_a_series_against_its_past_gives_the_autocorrelation() -> None:
    series = [math.sin(math.pi * step / 4) for step in range(64)]
    rolling = RollingPairs(16)
    for now, earlier in zip(series[4:], series, strict=False):
        rolling.update(now, earlier)
    assert rolling.correlation == pytest.approx(-1.0)
    assert rolling.correlation >= -1.0


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(-5, 5) | st.just(math.inf), st.floats(-1e6, 1e6)), min_size=2, max_size=30))
def test_rank_correlation_matches_scipy(pairs: list[tuple[float, float]]) -> None:
    xs, ys = zip(*pairs, strict=True)
    if len(set(xs)) == 1 or len(set(ys)) == 1:
        assert math.isnan(rank_correlation(xs, ys))
    else:
        assert rank_correlation(xs, ys) == pytest.approx(scipy_stats.spearmanr(xs, ys).statistic, abs=1e-12)


def test_rank_correlation_leaves_out_missing_pairs() -> None:
    assert rank_correlation([1, math.nan, 2, 3], [10, -5, 20, 30]) == 1.0
    assert math.isnan(rank_correlation([1, math.nan], [1, 2]))
    with pytest.raises(UsageError, match="the same length, got 2 and 1"):
        rank_correlation([1, 2], [1])
