"""The spread of the advantages, whitened and not."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.advantages.advantage_normalization_anomaly import AdvantageNormalization
from rldk.detectors.advantages.advantage_scale_anomaly import AdvantageScale

ROWS = 300
AT = np.arange(ROWS)


def spread(level: float = 2.0, sigma: float = 0.15, seed: int = 0) -> np.ndarray:
    return level * np.exp(np.random.default_rng(seed).normal(0.0, sigma, ROWS))


@pytest.mark.parametrize("seed", range(4))
def test_a_spread_that_learns_and_saturates_is_silent(where, seed):
    assert where(AdvantageScale(), {"advantage_std": spread(seed=seed) * (0.08 + 0.92 * np.exp(-AT / 60.0))}) == []


def test_a_spread_that_explodes(judge):
    (anomaly,) = judge(AdvantageScale(), {"advantage_std": spread() * np.where((AT >= 100) & (AT < 200), 20.0, 1.0)})
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.cleared_index) == (121, "warning", 102, 206)


def test_a_spread_that_dies(where):
    assert where(AdvantageScale(), {"advantage_std": spread() * np.where(AT < 100, 1.0, 0.01)}) == [(133, "warning")]


def test_the_scale_of_whitened_advantages_is_anothers(where):
    broken = {"advantage_mean": np.zeros(ROWS), "advantage_std": np.where(AT < 100, 1.0, 20.0)}
    assert where(AdvantageScale(), broken) == []
    assert where(AdvantageNormalization(), broken) == [(111, "warning")]


def test_whitening_that_holds_is_silent(where):
    rng = np.random.default_rng(0)
    held = {"advantage_mean": rng.normal(0.0, 0.01, ROWS), "advantage_std": 1.0 + rng.normal(0.0, 0.01, ROWS)}
    assert where(AdvantageNormalization(), held) == []


def test_groups_of_equal_rewards_lower_the_spread_by_right(where):
    group = {"advantage_mean": np.zeros(ROWS), "advantage_std": np.where(AT < 100, 0.925, 0.3)}
    assert where(AdvantageNormalization(), group) == []


def test_a_mean_that_leaves_zero_breaks_it(judge):
    mean = np.where((AT >= 100) & (AT < 200), 0.6, 0.0)
    (anomaly,) = judge(AdvantageNormalization(), {"advantage_mean": mean, "advantage_std": np.ones(ROWS)})
    assert (anomaly.index, anomaly.severity, anomaly.cleared_index) == (111, "warning", 206)


def test_advantages_that_were_never_whitened_cannot_break_it(where):
    free = {"advantage_mean": np.where(AT < 100, 0.0, 3.0), "advantage_std": spread(5.0)}
    assert where(AdvantageNormalization(), free) == []
    stated = {**free, "advantage_std": np.ones(ROWS), "advantage_normalized": np.zeros(ROWS)}
    assert where(AdvantageNormalization(), stated) == []


def test_batches_without_spread_between_others_are_silent(where):
    std = np.where(np.random.default_rng(0).random(300) < 0.6, 0.0, 1.0)  # a group a row: normalised, or nothing
    assert where(AdvantageScale(), {"advantage_std": std, "advantage_mean": np.zeros(300)}) == []
