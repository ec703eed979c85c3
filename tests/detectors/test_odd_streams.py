"""Gradients, advantages, loss and learning rate: whatever is logged, they neither fail nor forget."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.table import BY_TYPE, DETECTORS

KINDS = [kind for kind in DETECTORS if kind.family in ("gradient_norms", "advantage_statistics")]
KINDS += [BY_TYPE["loss_explosion"], BY_TYPE["learning_rate_too_high"]]
ROWS = 260


def names(kind) -> list[str]:
    return sorted({*kind.metrics(), *kind.reads})


ODD = {
    "nan": np.full(ROWS, np.nan),
    "inf": np.full(ROWS, np.inf),
    "minus inf": np.full(ROWS, -np.inf),
    "zero": np.zeros(ROWS),
    "constant": np.full(ROWS, 0.7),
    "identical negatives": np.full(ROWS, -3.0),
    "huge": np.full(ROWS, 1e308),
    "tiny": np.full(ROWS, 5e-324),
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.type)
def test_a_constant_of_any_kind_is_silent(where, kind):
    for shape in ("nan", "inf", "minus inf", "zero", "identical negatives", "tiny"):
        assert where(kind(), dict.fromkeys(names(kind), ODD[shape])) == [], shape


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.type)
def test_no_value_breaks_it(where, kind):
    rng = np.random.default_rng(7)
    pool = np.array([0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, np.nan, np.inf, -np.inf, 1e-3, 42.0])
    for _ in range(10):
        where(kind(), {name: rng.choice(pool, ROWS) for name in names(kind)})
    where(kind(), {name: np.where(np.arange(ROWS) < 100, 1.0, 1e308) for name in names(kind)})
    where(kind(), {name: np.where(np.arange(ROWS) < 100, 1e308, -1e308) for name in names(kind)})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.type)
def test_a_break_changes_nothing(judge, broken_off, kind):
    for row in (3, 60, 125, 180):
        _check_break(judge, broken_off, kind, row)


def _check_break(judge, broken_off, kind, row):
    rng = np.random.default_rng(row)
    columns = {}
    for name in names(kind):
        values = np.exp(rng.normal(0.0, 0.5, ROWS)) * np.where(np.arange(ROWS) < 120, 1.0, rng.choice([1e-4, 1.0, 300.0]))
        columns[name] = [None if gap else value for value, gap in zip(values.tolist(), rng.random(ROWS) < 0.05, strict=True)]
    whole = [anomaly.to_dict() for anomaly in judge(kind(), columns)]
    assert [anomaly.to_dict() for anomaly in broken_off(kind, columns, row)] == whole
