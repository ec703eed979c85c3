"""KL and value: whatever is logged, they neither fail nor warn of nothing."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.table import DETECTORS

KINDS = [kind for kind in DETECTORS if kind.family in ("kl_schedule", "value")]
ROWS = 300
UNITS = ["token", "sequence", "unstated"]


def names(kind) -> list[str]:
    return sorted({*kind.metrics(), *kind.reads})


def test_all_types_of_the_contract_are_there():
    assert {kind.type for kind in KINDS} >= {
        "kl_trend_anomaly", "kl_volatility_anomaly", "target_range_anomaly", "controller_responsiveness_anomaly",
        "controller_overshoot_anomaly", "controller_oscillation_anomaly", "coef_adaptation_anomaly", "kl_explosion",
        "kl_spike", "negative_kl", "value_divergence", "value_unexplained",
    }  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.type)
@pytest.mark.parametrize("unit", UNITS)
def test_a_constant_is_silent(fires, kind, unit):
    for value in (np.nan, np.inf, -np.inf, 0.0, 5e-324, 2e-3, 0.2):
        columns = {name: np.full(ROWS, value) for name in names(kind)}
        if 0.0 <= value < 1e-9:
            for name in ("explained_variance", "value_trainable_params", "weight_change_value"):
                columns.pop(name, None)  # values that explain nothing, and weights that stay, are their defect
        assert fires(kind(), {"step_time": np.ones(ROWS), **columns}, unit) == [], value


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.type)
@pytest.mark.parametrize("unit", UNITS)
def test_no_value_breaks_it(fires, kind, unit):
    rng = np.random.default_rng(7)
    pool = np.array([0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, np.nan, np.inf, -np.inf, 1e-3, 42.0])
    for _ in range(2):
        fires(kind(), {name: rng.choice(pool, ROWS) for name in names(kind)}, unit)
        fires(kind(), {name: rng.choice(pool, ROWS) for name in names(kind)}, unit, kl_target=0.1, kl_target_tolerance=0.05)
    for before, after in ((1.0, 1e308), (1e308, -1e308), (1e-300, 1e300), (-1.0, 1.0)):
        fires(kind(), {name: np.where(np.arange(ROWS) < 120, before, after) for name in names(kind)}, unit, kl_target=6.0)
