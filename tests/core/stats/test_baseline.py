"""The run's own baseline: when it is ready, how it scores, and what it refuses to learn."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.stats import Baseline


def taught(baseline: Baseline, values: list[float]) -> Baseline:
    for value in values:
        baseline.update(value)
    return baseline


def noise(count: int, level: float = 0.0, seed: int = 0) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(level, 1.0) for _ in range(count)]


@settings(max_examples=100, deadline=None)
@given(warm=st.lists(st.floats(-100, 100), min_size=5, max_size=5), later=st.lists(st.floats(-100, 100), max_size=20))
def test_is_the_median_and_mad_of_the_warmup_for_ever(warm: list[float], later: list[float]) -> None:
    baseline = taught(Baseline(warmup=5), [*warm[:3], math.nan, math.inf, warm[3]])
    assert (baseline.ready, math.isnan(baseline.location), math.isnan(baseline.score(1.0))) == (False, True, True)
    taught(baseline, [warm[4], *later])
    median = float(np.median(warm))
    spread = 1.4826 * float(np.median(np.abs(np.array(warm) - median)))
    spread = spread or 1.2533 * float(np.mean(np.abs(np.array(warm) - median)))
    assert baseline.ready
    assert baseline.location == median
    assert baseline.scale == pytest.approx(max(spread, 0.01 * abs(median), 1e-8))
    assert baseline.score(7.0) == pytest.approx((7.0 - median) / baseline.scale)
    assert (baseline.score(math.inf), baseline.score(-math.inf)) == (math.inf, -math.inf)
    assert math.isnan(baseline.score(math.nan))


def test_an_outlier_in_the_warmup_does_little() -> None:
    clean, dirty = taught(Baseline(20), noise(20)), taught(Baseline(20), [*noise(19), 1e6])
    assert dirty.location == pytest.approx(clean.location, abs=0.3)
    assert dirty.scale == pytest.approx(clean.scale, rel=0.3)


def test_a_constant_start_does_not_make_rounding_errors_alarming() -> None:
    assert abs(taught(Baseline(10), [0.1] * 10).score(0.1 + 1e-16)) < 1e-9
    assert taught(Baseline(10), [100.0] * 10).score(101.0) == pytest.approx(1.0)
    assert taught(Baseline(10, absolute_floor=0.5), [0.0] * 10).score(1.0) == 2.0
    assert math.isfinite(taught(Baseline(10), [0.0] * 10).score(1.0))


def test_zeros_in_more_than_half_of_the_rows_do_not_hide_the_spread_of_the_others() -> None:
    baseline = taught(Baseline(10), [0.0, 2.0, 0.0, 3.0, 0.0, 0.0, 2.5, 0.0, 0.0, 3.5])
    assert baseline.location == 0.0
    assert abs(baseline.score(3.0)) < 3.0


def test_follows_slow_change_but_learns_no_fault() -> None:
    drifting = [value + 0.005 * step for step, value in enumerate(noise(1000))]
    frozen, following = taught(Baseline(50), drifting), taught(Baseline(50, window=100), drifting)
    assert frozen.location == pytest.approx(0.0, abs=0.5)
    assert following.location == pytest.approx(4.75, abs=0.5)
    level, scale, rejected = following.location, following.scale, following.rejected
    taught(following, noise(500, level=50.0, seed=1))
    assert (following.location, following.scale, following.rejected) == (level, scale, rejected + 500)


def test_takes_in_an_eighth_of_the_window_before_it_moves() -> None:
    baseline = taught(Baseline(8, window=16), [0.0, 1.0] * 4)
    assert taught(baseline, [0.8]).location == 0.5
    assert taught(baseline, [0.8]).location == pytest.approx(0.8)
