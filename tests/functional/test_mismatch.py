"""What sampler and trainer differ in, against plain loops."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.functional.mismatch import mismatch_statistics, truncated_importance

pytestmark = pytest.mark.full
torch = pytest.importorskip("torch")

LOGP = st.floats(-6, -0.01)
ROWS = st.lists(st.tuples(LOGP, LOGP, st.booleans()), min_size=3, max_size=20).filter(
    lambda rows: sum(row[2] for row in rows) > 1
)


def columns(rows):
    first, second = (torch.tensor([row[i] for row in rows], dtype=torch.float64) for i in range(2))
    return first, second, torch.tensor([row[2] for row in rows])


@settings(max_examples=50, deadline=None)
@given(rows=ROWS)
def test_the_metrics_are_those_of_a_plain_loop(rows) -> None:
    found = mismatch_statistics(*columns(rows))
    pairs = [(trainer, sampler) for trainer, sampler, on in rows if on]
    n = len(pairs)
    assert found["mismatch_kl"] == pytest.approx(sum(math.exp(t - s) - 1 - (t - s) for t, s in pairs) / n, abs=1e-9)
    assert found["mismatch_logp_diff"] == pytest.approx(sum(abs(t - s) for t, s in pairs) / n)
    assert found["mismatch_prob_diff"] == pytest.approx(sum(abs(math.exp(t) - math.exp(s)) for t, s in pairs) / n)
    assert found["mismatch_ratio"] == pytest.approx(sum(math.exp(abs(t - s)) for t, s in pairs) / n)
    assert found["sampling_ratio_mean"] == pytest.approx(sum(math.exp(t - s) for t, s in pairs) / n)


def test_the_correlation_is_that_of_numpy_and_missing_where_nothing_varies() -> None:
    import numpy as np

    trainer, sampler = torch.tensor([-1.0, -2.0, -0.5, -3.0]), torch.tensor([-1.1, -1.8, -0.6, -2.5])
    found = mismatch_statistics(trainer, sampler, torch.ones(4))
    expected = np.corrcoef(np.exp(trainer.numpy()), np.exp(sampler.numpy()))[0, 1]
    assert found["mismatch_prob_corr"] == pytest.approx(expected, rel=1e-5)
    assert "mismatch_prob_corr" not in mismatch_statistics(torch.full((4,), -1.0), sampler, torch.ones(4))
    assert mismatch_statistics(trainer, sampler, torch.zeros(4)) == {}


@settings(max_examples=50, deadline=None)
@given(rows=ROWS, most=st.floats(0.5, 5))
def test_importance_is_the_ratio_up_to_a_limit(rows, most) -> None:
    trainer, sampler, _ = columns(rows)
    expected = [min(math.exp(row[0] - row[1]), most) for row in rows]
    assert truncated_importance(trainer, sampler, most).tolist() == pytest.approx(expected)
