"""A reward that pays for length: by how much, for how long, and whether responses follow."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.length.length_bias import LengthBias

ROWS = 200
AT = np.arange(ROWS)
GROWING = {"rollout_length_mean": np.where(AT < 50, 100.0, 250.0)}
UNENDING = {"eos_frac": np.where(AT < 50, 0.9, 0.2)}


def correlation(level: float) -> dict[str, np.ndarray]:
    return {"length_reward_corr": level + np.random.default_rng(3).normal(0.0, 0.03, ROWS)}


@pytest.mark.parametrize("others", [{}, GROWING, UNENDING], ids=["alone", "growing", "unending"])
@pytest.mark.parametrize("level", [-0.8, 0.0, 0.25])
def test_a_low_or_negative_correlation_is_silent(told, level, others):
    assert told(LengthBias(), {**correlation(level), **others}) == []


def test_one_above_the_threshold_is_told_where_it_lasts_seventy_rows(told):
    assert told(LengthBias(), correlation(0.5)) == [(73, "warning", "lasting")]
    rows = len(correlation(0.5)["length_reward_corr"])
    settled = {**correlation(0.5), "rollout_length_mean": np.full(rows, 40.0)}
    assert told(LengthBias(), settled) == [(73, "note", "lasting")]
    assert told(LengthBias(), {**settled, "rollout_length_mean": 40.0 * 1.008 ** np.arange(rows)})[0][1] == "warning"
    short = {"length_reward_corr": np.where(AT < 65, 0.5, 0.0)}
    assert told(LengthBias(), short) == []


@pytest.mark.parametrize("others", [GROWING, UNENDING], ids=["growing", "unending"])
def test_and_at_once_where_responses_grow_or_stop_ending(told, others):
    assert told(LengthBias(), {**correlation(0.5), **others}) == [(56, "warning", "grows")]


def test_a_length_that_decides_the_reward_is_told_at_once(told):
    assert told(LengthBias(), correlation(0.9)) == [(8, "warning", "decides")]


def test_and_is_critical_once_responses_grow(told):
    found = told(LengthBias(), {**correlation(0.9), **GROWING})
    assert found[0] == (8, "warning", "decides") and found[1][1:] == ("critical", "pays_and_grows")
    assert [one[1] for one in told(LengthBias(), {**correlation(0.8), **GROWING})] == ["warning"]


def test_and_is_critical_once_responses_stop_ending(told):
    found = told(LengthBias(), {**correlation(0.9), **UNENDING})
    assert found == [(8, "warning", "decides"), (56, "critical", "pays_and_grows")]
