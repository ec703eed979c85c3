"""Gradients, advantages, loss and learning rate: whatever is logged, they neither fail nor warn of nothing."""

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
    for _ in range(3):  # and more streams in tests/testing/test_detector_conformance.py
        where(kind(), {name: rng.choice(pool, ROWS) for name in names(kind)})
    where(kind(), {name: np.where(np.arange(ROWS) < 100, 1.0, 1e308) for name in names(kind)})
    where(kind(), {name: np.where(np.arange(ROWS) < 100, 1e308, -1e308) for name in names(kind)})
