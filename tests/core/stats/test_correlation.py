"""Correlations against numpy and scipy on the same window."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.errors import UsageError
from rldk.core.stats import RollingCorrelation, rank_correlation

pytestmark = pytest.mark.full
scipy_stats = pytest.importorskip("scipy.stats")

eighths = st.integers(-500, 500).map(lambda whole: whole / 8)
holes = st.sampled_from([math.nan, math.inf])
pairs = st.lists(st.tuples(eighths | holes, eighths | holes), max_size=60)


@settings(max_examples=100, deadline=None)
@given(pairs=pairs, window=st.integers(3, 12), offset=st.sampled_from([0.0, 1e6]))
def test_matches_numpy_over_the_last_whole_pairs(pairs: list[tuple[float, float]], window: int, offset: float) -> None:
    rolling = RollingCorrelation(window)
    seen: list[tuple[float, float]] = []
    for x, y in pairs:
        rolling.update(x + offset, y)
        seen += [(x, y)] if math.isfinite(x) and math.isfinite(y) else []
        xs, ys = np.array(seen[-window:]).reshape(-1, 2).T
        assert rolling.count == len(xs)
        if len(xs) < 2 or np.ptp(xs) == 0 or np.ptp(ys) == 0:
            assert math.isnan(rolling.correlation)
        else:
            assert rolling.correlation == pytest.approx(np.corrcoef(xs, ys)[0, 1], abs=1e-7)


def test_does_not_drift_and_forgets_spikes() -> None:
    rng = random.Random(0)
    xs = [1e8 + rng.gauss(0.0, 1.0) for _ in range(100_000)]
    ys = [x - 1e8 + rng.gauss(0.0, 1.0) for x in xs]
    rolling = RollingCorrelation(50)
    for step, (x, y) in enumerate(zip(xs, ys, strict=True)):
        rolling.update(x, 1e12 if step == 99_949 else y)
    assert rolling.correlation == pytest.approx(np.corrcoef(np.array(xs[-50:]) - 1e8, ys[-50:])[0, 1], abs=1e-6)


def test_a_series_against_its_past_gives_the_autocorrelation() -> None:
    series = [math.sin(math.pi * step / 4) for step in range(64)]
    rolling = RollingCorrelation(16)
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
    with pytest.raises(UsageError, match="of one length, got 2 and 1"):
        rank_correlation([1, 2], [1])
