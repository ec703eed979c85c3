"""Advantages: samples against scipy, trends and risks against the plain history, and whitening."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.errors import UsageError
from rldk.forensics import AdvantageStatisticsTracker
from rldk.functional.advantages import describe

WINDOW = 10
means = st.integers(-40, 40).map(lambda whole: whole / 16)
spreads = st.integers(1, 60).map(lambda whole: whole / 16)


def level(values: list[float]) -> float:
    found = math.log(values[0])
    for value in values[1:]:
        found += 0.2 * (math.log(value) - found)
    return found


@settings(max_examples=150, deadline=None)
@given(pairs=st.lists(st.tuples(means, spreads), min_size=3, max_size=50))
def test_everything_is_what_the_history_says(pairs: list[tuple[float, float]]) -> None:
    tracker = AdvantageStatisticsTracker(WINDOW)
    for step, (mean, std) in enumerate(pairs):
        found = tracker.update(step, mean, std)
    history, stds = [list(column) for column in zip(*pairs, strict=True)]
    white = [abs(mean) <= 0.05 and abs(std - 1) <= 0.1 for mean, std in pairs][-WINDOW:]
    assert found.whitened == (len(white) >= 5 and np.mean(white) >= 0.9)
    if found.whitened:
        return
    assert found.advantage_bias == pytest.approx(abs(history[-1]) / stds[-1])
    assert found.advantage_bias_risk == pytest.approx(found.advantage_bias / (1 + found.advantage_bias))
    seen, logs = np.array(history[-WINDOW:]), np.log(stds[-WINDOW:])
    x = np.arange(len(seen))
    slope, offset = np.polyfit(x, seen, 1)
    noise = math.sqrt(sum((seen - slope * x - offset) ** 2) / (len(seen) - 2))
    rate, start = np.polyfit(x, logs, 1)
    spread = math.sqrt(sum((logs - rate * x - start) ** 2) / (len(seen) - 2))
    size = math.exp(level(stds))
    assert found.advantage_mean_trend == pytest.approx(slope, abs=1e-9)
    assert found.advantage_std_trend == pytest.approx(rate, abs=1e-9)
    assert found.advantage_volatility == pytest.approx(noise / size, abs=1e-6)
    assert found.advantage_scale_stability == pytest.approx(
        min(1, max(math.log(2), 1.5 * float(np.std(np.log(stds[:20]), ddof=1))) / max(spread, 1e-12)), rel=1e-6
    )
    lasting = abs(float(seen.mean())) / size
    parts = found.score_parts["advantage_health"]
    assert parts["bias"] == pytest.approx(1 if lasting <= 0.5 else 0.5 / lasting)
    known = [part for part in parts.values() if part == part]
    assert found.advantage_health_score == pytest.approx(math.prod(known) ** (1 / len(known)))


def test_a_sample_of_raw_advantages_by_hand() -> None:
    found = AdvantageStatisticsTracker().update(1, advantage_mean=9.0, advantage_samples=[1.0, 2.0, 3.0, 4.0, 10.0])
    assert found.advantage_mean == 4.0
    assert found.advantage_std == pytest.approx(math.sqrt((9 + 4 + 1 + 0 + 36) / 4))
    assert (found.advantage_min, found.advantage_median, found.advantage_max) == (1.0, 3.0, 10.0)
    percentiles = [found.advantage_p5, found.advantage_p25, found.advantage_p75, found.advantage_p95]
    assert percentiles == pytest.approx([1.2, 2.0, 4.0, 8.8])


def test_extremes_and_shape_are_judged() -> None:
    tracker = AdvantageStatisticsTracker()
    for step in range(40):
        found = tracker.update(step, 0.0, 1.5, -3.0, 60.0, advantage_skewness=6.0, advantage_kurtosis=40.0)
    assert found.advantage_distribution_risk == pytest.approx(1 - (0.5 * 0.5 * 0.5) ** (1 / 3))
    assert found.score_parts["advantage_quality"]["distribution"] == pytest.approx(0.5)


def test_whitened_advantages_are_recognised_and_judged_by_their_shape() -> None:
    rng = np.random.default_rng(0)
    tracker = AdvantageStatisticsTracker()
    for step in range(30):
        found = tracker.update(step, float(rng.normal(0, 1e-7)), float(1 + rng.normal(0, 1e-3)), -2.0, 2.5)
    assert found.whitened
    assert math.isnan(found.advantage_bias)
    assert math.isnan(found.advantage_scale_stability)
    assert found.advantage_normalization_health == 1.0
    assert {name for name, part in found.score_parts["advantage_health"].items() if part == part} == {
        "normalization",
        "distribution",
    }
    assert found.advantage_health_score == 1.0


def test_whitening_that_is_lost_is_seen() -> None:
    tracker = AdvantageStatisticsTracker(window_size=20)
    for step in range(20):
        tracker.update(step, 0.0, 1.0)
    for step in range(20, 40):
        found = tracker.update(step, 0.8, 0.2)
    assert not found.whitened
    assert found.advantage_normalization_health == 0.0
    assert found.advantage_bias == pytest.approx(4.0)
    assert found.advantage_health_score == 0.0


def test_raw_advantages_are_not_taken_for_whitened_ones() -> None:
    rng = np.random.default_rng(1)
    tracker = AdvantageStatisticsTracker()
    found = [tracker.update(step, advantage_samples=rng.normal(0.1, 1.0, 64)).whitened for step in range(200)]
    assert not any(found)


def test_a_spread_that_dies_leaves_nothing_to_learn_from() -> None:
    tracker = AdvantageStatisticsTracker()
    for step in range(20):
        tracker.update(step, 0.0, 0.5)
    for step in range(20, 60):
        found = tracker.update(step, 0.0, 0.0)
    assert found.advantage_quality_score == 0.0


def test_without_a_spread_the_range_tells_the_scale() -> None:
    """verl logs mean, min and max, and no spread."""
    tracker = AdvantageStatisticsTracker()
    for step in range(20):
        found = tracker.update(step, 0.0, advantage_min=-2.0, advantage_max=2.0 + 0.1 * (step % 3))
    assert math.isnan(found.advantage_bias)
    assert found.advantage_scale_stability == 1.0


def test_what_is_not_logged_stays_nan() -> None:
    found = AdvantageStatisticsTracker().update(1).to_dict()
    assert {name for name, value in found.items() if value is not None} == {"step", "whitened"}


@pytest.mark.parametrize("sample", [[], np.zeros((0, 3))])
def test_an_empty_sample_says_nothing(sample: list[float]) -> None:
    assert describe(sample) == {}


def test_a_sample_that_is_not_finite_has_no_mean_and_the_rest_is_described() -> None:
    found = describe([1.0, math.nan, 3.0, math.inf])
    assert math.isnan(found["advantage_mean"])
    assert math.isnan(found["advantage_std"])
    assert (found["advantage_min"], found["advantage_max"]) == (1.0, 3.0)
    assert set(describe([math.nan])) == {"advantage_mean", "advantage_std"}


@pytest.mark.parametrize("value", [0.0, 0.1, -3e8, 1e308, 5e-324])
def test_a_constant_sample_has_no_spread_and_no_shape(value: float) -> None:
    found = describe([value] * 7)
    assert found["advantage_mean"] == found["advantage_median"] == found["advantage_p95"] == value
    assert found["advantage_std"] == 0.0
    assert "advantage_skewness" not in found


def test_samples_of_any_magnitude_neither_overflow_nor_warn() -> None:
    found = describe([1e308, -1e308, 1e307])
    assert all(math.isfinite(value) for value in found.values())
    assert found["advantage_std"] == pytest.approx(np.std(np.array([1.0, -1.0, 0.1]), ddof=1) * 1e308)


def test_what_is_no_sample_is_refused() -> None:
    with pytest.raises(UsageError, match="`advantages` to be a sample of numbers, got 'many'"):
        describe("many")


@pytest.mark.full
@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(-1e3, 1e3).map(lambda value: round(value, 3)), min_size=2, max_size=60),
    st.sampled_from([1.0, 1e-150, 1e150]),
)
def test_a_sample_is_described_as_scipy_does(values: list[float], scale: float) -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    if np.ptp(values) < 1e-2:
        return
    found = describe([value * scale for value in values])
    assert found["advantage_mean"] == pytest.approx(np.mean(values) * scale, rel=1e-9, abs=1e-9 * scale)
    assert found["advantage_std"] == pytest.approx(np.std(values, ddof=1) * scale)
    assert found["advantage_skewness"] == pytest.approx(scipy_stats.skew(values), abs=1e-6)
    assert found["advantage_kurtosis"] == pytest.approx(scipy_stats.kurtosis(values), abs=1e-6)
    for name, q in {"min": 0, "p5": 5, "p25": 25, "median": 50, "p75": 75, "p95": 95, "max": 100}.items():
        assert found[f"advantage_{name}"] == pytest.approx(np.percentile(values, q) * scale, rel=1e-9, abs=1e-9 * scale)
