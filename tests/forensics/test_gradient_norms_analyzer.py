"""Gradient norms: every number against the plain history."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.forensics import GradientNormsAnalyzer

WINDOW = 10
norms = st.integers(-12, 12).map(lambda whole: 2.0 ** (whole / 2))


def level(values: list[float]) -> float:
    found = math.log(values[0])
    for value in values[1:]:
        found += 0.2 * (math.log(value) - found)
    return found


def base(values: list[float]) -> float:
    return float(np.mean(np.log(values[:20])))


def early_spread(values: list[float]) -> float:
    return float(np.std(np.log(values[:20]), ddof=1)) if len(values) > 1 else 0.0


def strain(values: list[float]) -> tuple[float, float]:
    """Decades above and below what is healthy: 0.1 to 10, or a factor of 10, or three early spreads, about the start."""
    margin = max(10.0, math.exp(3 * early_spread(values)))
    high, low = max(10.0, margin * math.exp(base(values))), min(0.1, math.exp(base(values)) / margin)
    now = math.exp(level(values))
    return math.log10(now / high), math.log10(low / now)


@settings(max_examples=150, deadline=None)
@given(pairs=st.lists(st.tuples(norms, norms), min_size=1, max_size=50))
def test_everything_is_what_the_history_says(pairs: list[tuple[float, float]]) -> None:
    analyzer = GradientNormsAnalyzer(WINDOW)
    for step, (policy, value) in enumerate(pairs):
        found = analyzer.update(step, policy, value)
    policies, values = [list(column) for column in zip(*pairs, strict=True)]
    ratios = [policy / value for policy, value in pairs]
    assert (found.policy_grad_norm, found.value_grad_norm) == pairs[-1]
    assert math.isnan(found.total_grad_norm)
    assert found.policy_value_ratio == pytest.approx(ratios[-1])
    (up, down), (up_value, down_value) = strain(policies), strain(values)
    large, small = max(up, up_value), max(down, down_value)
    assert found.gradient_flow_health == pytest.approx(10.0 ** -max(large, small, 0.0))
    assert found.exploding_gradient_risk == pytest.approx(min(max(2 * large + 1, 0), 1), abs=1e-9)
    assert found.vanishing_gradient_risk == pytest.approx(min(max(2 * small + 1, 0), 1), abs=1e-9)
    away = min(abs(level(ratios)), abs(level(ratios) - base(ratios))) / math.log(10)
    assert found.gradient_balance == pytest.approx(1 if away <= 1 else 1 / away)
    assert found.gradient_imbalance_risk == pytest.approx(min(max(away - 0.5, 0), 1), abs=1e-9)
    seen = np.log(policies[-WINDOW:])
    if len(seen) > 2:
        x = np.arange(len(seen))
        slope, offset = np.polyfit(x, seen, 1)
        spread = math.sqrt(sum((seen - slope * x - offset) ** 2) / (len(seen) - 2))
        assert found.policy_grad_trend == pytest.approx(slope, abs=1e-9)
        assert found.gradient_stability == pytest.approx(
            min(1, max(math.log(2), 1.5 * early_spread(policies)) / max(spread, 1e-12)), rel=1e-6
        )
        assert found.ratio_trend == pytest.approx(np.polyfit(x, np.log(ratios[-WINDOW:]), 1)[0], abs=1e-9)
    parts = found.score_parts["gradient_health"]
    assert parts == pytest.approx(
        {
            "flow": found.gradient_flow_health,
            "balance": found.gradient_balance,
            "not_exploding": 1 - found.exploding_gradient_risk,
            "not_vanishing": 1 - found.vanishing_gradient_risk,
        }
    )
    assert found.gradient_health_score == pytest.approx(math.prod(parts.values()) ** 0.25)


def test_a_run_of_its_own_scale_is_healthy() -> None:
    """A tiny model, or a loss that is summed: what the run started with is what is normal for it."""
    for scale in (1e-4, 300.0):
        analyzer = GradientNormsAnalyzer()
        for step in range(100):
            found = analyzer.update(step, total_grad_norm=scale * (1 + 0.2 * math.sin(step)))
        assert found.gradient_health_score > 0.95
        assert found.training_stability > 0.95


def test_an_explosion_and_a_decay_are_seen() -> None:
    growing, fading = GradientNormsAnalyzer(), GradientNormsAnalyzer()
    for step in range(60):
        factor = 1.0 if step < 30 else 1.3 ** (step - 29)
        up, down = growing.update(step, factor, 1.0), fading.update(step, 1.0 / factor, 1.0)
    assert up.exploding_gradient_risk == 1.0
    assert up.gradient_health_score == 0.0
    assert down.vanishing_gradient_risk == 1.0
    assert up.gradient_imbalance_risk == down.gradient_imbalance_risk == 1.0
    assert up.ratio_trend > 0 > down.ratio_trend


def test_zeros_in_every_other_row_are_nothing_and_many_in_a_row_are_the_end() -> None:
    analyzer = GradientNormsAnalyzer()
    for step in range(40):
        found = analyzer.update(step, total_grad_norm=float(step % 2))
    assert found.gradient_health_score == 1.0
    risks = [analyzer.update(step, total_grad_norm=0.0).vanishing_gradient_risk for step in range(25)]
    assert risks[:5] == [0.0] * 5
    assert risks[19:] == [1.0] * 6
    assert analyzer.metrics().gradient_flow_health == 0.0


@pytest.mark.parametrize("bad", [math.inf, -1.0])
def test_a_norm_that_is_none_is_not_healthy(bad: float) -> None:
    analyzer = GradientNormsAnalyzer()
    for step in range(10):
        analyzer.update(step, 1.0, 1.0)
    found = analyzer.update(10, bad, 1.0)
    assert found.gradient_flow_health == found.gradient_health_score == 0.0
    assert found.exploding_gradient_risk == 1.0


def test_what_is_not_logged_stays_nan() -> None:
    found = GradientNormsAnalyzer().update(3)
    assert found.step == 3
    assert all(value is None for name, value in found.to_dict().items() if name != "step")
    only = GradientNormsAnalyzer().update(1, policy_grad_norm=1.0)
    assert math.isnan(only.policy_value_ratio)
    assert math.isnan(only.gradient_balance)
    assert math.isnan(GradientNormsAnalyzer().update(1, total_grad_norm=0.0).gradient_health_score)
