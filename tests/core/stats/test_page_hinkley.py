"""The Page–Hinkley test against river's: the same detections at the same updates."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.stats import PageHinkley

pytestmark = pytest.mark.full
drift = pytest.importorskip("river.drift")


def steps(seed: int, count: int = 400) -> list[float]:
    """Noise around a level that jumps now and then."""
    rng = random.Random(seed)
    level, values = 0.0, []
    for _ in range(count):
        level += rng.choice([-3.0, 3.0]) if rng.random() < 0.02 else 0.0
        values.append(rng.gauss(level, 1.0))
    return values


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    threshold=st.sampled_from([5.0, 20.0, 50.0]),
    delta=st.sampled_from([0.0, 0.005, 0.3]),
    alpha=st.sampled_from([0.9, 0.9999, 1.0]),
    min_count=st.sampled_from([1, 30]),
)
def test_detects_where_river_does(seed: int, threshold: float, delta: float, alpha: float, min_count: int) -> None:
    ours = PageHinkley(delta, threshold, alpha, min_count=min_count)
    theirs = drift.PageHinkley(min_instances=min_count, delta=delta, threshold=threshold, alpha=alpha)
    found: tuple[list[int], list[int]] = ([], [])
    for step, value in enumerate(steps(seed)):
        ours.update(value)
        theirs.update(value)
        if ours.detected:
            found[0].append(step)
        if theirs.drift_detected:
            found[1].append(step)
    assert found[0] == found[1]


def test_the_defaults_are_rivers() -> None:
    ours, theirs = PageHinkley(), drift.PageHinkley()
    assert (ours.delta, ours.threshold, ours.alpha, ours.min_count) == (
        theirs.delta,
        theirs.threshold,
        theirs.alpha,
        theirs.min_instances,
    )


@pytest.mark.parametrize(("by", "index", "direction"), [(3.0, 106, 1), (-3.0, 105, -1), (0.0, None, 0)])
def test_fires_soon_after_a_shift_and_says_which_way(by: float, index: int | None, direction: int) -> None:
    rng = random.Random(0)
    test = PageHinkley(delta=0.1, threshold=20.0)
    found = None
    for step in range(200):
        test.update(rng.gauss(by if step >= 100 else 0.0, 1.0))
        if test.detected:
            found = step
            break
    assert (found, test.direction) == (index, direction)
    assert test.detected == (max(test.rise, test.fall) > 20.0)


def test_starts_anew_on_the_level_it_finds() -> None:
    test = PageHinkley(threshold=5.0, min_count=3)
    found = []
    for step, value in enumerate([0.0] * 10 + [10.0] * 20 + [1e308, -1e308] + [0.0] * 50 + [10.0] * 5):
        test.update(value)
        found += [step] if test.detected else []
    assert found[0] == 10
    assert not set(found) & set(range(11, 30)), "silent on the new level"
    assert found[-1] == 82, "after an overflow, too"


def test_an_overflow_in_both_directions_is_a_change_and_not_the_end() -> None:
    test = PageHinkley(threshold=5.0)
    overflow = [-1.7e308] * 3 + [1.7e308] * 12 + [-1.7e308]
    found = []
    for step, value in enumerate([*overflow, *[0.0] * 84, *[10.0] * 5]):
        test.update(value)
        found += [step] if test.detected else []
    assert found == [29, 100]
