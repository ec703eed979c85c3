"""The P² estimate against the paper's algorithm, river's, and the true quantile."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.stats import P2Quantile

pytestmark = pytest.mark.full
river_stats = pytest.importorskip("river.stats")


def textbook(values: list[float], q: Fraction) -> list[float]:
    """The algorithm as in Box 1 of the paper, with exact desired positions; the estimates from the sixth value on."""
    heights, ranks, estimates = sorted(values[:5]), [1, 2, 3, 4, 5], []
    for count, value in enumerate(values[5:], 6):
        heights[0], heights[4] = min(heights[0], value), max(heights[4], value)
        cell = next((i for i in range(4) if heights[i] <= value < heights[i + 1]), 3)
        ranks = [rank + (i > cell) for i, rank in enumerate(ranks)]
        for i, share in ((1, q / 2), (2, q), (3, (1 + q) / 2)):
            lag = 1 + (count - 1) * share - ranks[i]
            step = 1 if lag >= 1 else -1 if lag <= -1 else 0
            if not step or abs(ranks[i + step] - ranks[i]) < 2:
                continue
            (x0, x1, x2), (y0, y1, y2) = ranks[i - 1 : i + 2], heights[i - 1 : i + 2]
            rise, fall = (x1 - x0 + step) * (y2 - y1) / (x2 - x1), (x2 - x1 - step) * (y1 - y0) / (x1 - x0)
            moved = y1 + step / (x2 - x0) * (rise + fall)
            if not y0 < moved < y2:
                moved = y1 + step * (heights[i + step] - y1) / (ranks[i + step] - x1)
            heights[i], ranks[i] = moved, x1 + step
        estimates.append(heights[2])
    return estimates


def jagged(seed: int, count: int = 200) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(0.0, 1.0) * rng.choice([1.0, 1.0, 20.0]) for _ in range(count)]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), percent=st.integers(1, 99))
def test_matches_the_paper(seed: int, percent: int) -> None:
    values, estimate, estimates = jagged(seed), P2Quantile(percent / 100), []
    for value in values:
        estimate.update(value)
        estimates.append(estimate.value)
    assert estimates[5:] == pytest.approx(textbook(values, Fraction(percent, 100)), rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), q=st.integers(1, 63).map(lambda whole: whole / 64))
def test_matches_river(seed: int, q: float) -> None:
    """For dyadic q: for others, river adds up rounding errors in the desired positions, and ties fall otherwise."""
    ours, theirs = P2Quantile(q), river_stats.Quantile(q)
    for count, value in enumerate(jagged(seed), 1):
        ours.update(value)
        ours.update(math.nan)
        theirs.update(value)
        if count > 5:
            assert ours.value == pytest.approx(theirs.get(), rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5), q=st.floats(0.01, 0.99))
def test_is_exact_up_to_five_values(values: list[float], q: float) -> None:
    estimate = P2Quantile(q)
    for value in values:
        estimate.update(value)
    assert estimate.value == pytest.approx(float(np.quantile(values, q)), rel=1e-12, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(values=st.lists(st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0]), min_size=6, max_size=80))
def test_stays_within_the_values(values: list[float]) -> None:
    estimate = P2Quantile(0.7)
    for value in values:
        estimate.update(value)
    assert min(values) <= estimate.value <= max(values)


@pytest.mark.parametrize("q", [0.05, 0.5, 0.9, 0.99])
def test_comes_near_the_true_quantile(q: float) -> None:
    rng = np.random.default_rng(3)
    values = rng.lognormal(size=20_000)
    estimate = P2Quantile(q)
    for value in values:
        estimate.update(value)
    share_below = float(np.mean(values < estimate.value))
    assert share_below == pytest.approx(q, abs=0.01)
