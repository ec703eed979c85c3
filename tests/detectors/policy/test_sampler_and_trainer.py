"""Importance weights between sampler and trainer: throttled updates, uneven weights, and a gap from the first row on."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.policy.importance_weights_degenerate import ImportanceWeightsDegenerate
from rldk.detectors.policy.sampler_mismatch import SamplerMismatch
from rldk.detectors.policy.throttled_update import ThrottledUpdate

ROWS = 100
AT = np.arange(ROWS)


def about(level: float, spread: float = 0.02, seed: int = 0) -> np.ndarray:
    return level * np.exp(np.random.default_rng(seed).normal(0.0, spread, ROWS))


def test_a_weight_of_half_while_log_probabilities_agree_throttles(told, judge):
    columns = {"sampling_ratio_mean": about(0.569), "mismatch_logp_diff": about(0.012)}
    assert told(ThrottledUpdate(), columns) == [(18, "warning", "throttled")]
    (anomaly,) = judge(ThrottledUpdate(), columns)
    assert "sampler and trainer agree (log-probabilities: 0.012)" in anomaly.message


def test_a_weight_that_has_fallen_is_throttled_below_a_half(told):
    near = {"mismatch_logp_diff": about(0.02)}
    assert told(ThrottledUpdate(), {"sampling_ratio_mean": np.where(AT < 20, 1.0, 0.4), **near}) == [(36, "warning", "fallen")]
    assert told(ThrottledUpdate(), {"sampling_ratio_mean": np.where(AT < 20, 1.0, 0.6), **near}) == []


def test_a_weight_near_zero_is_critical(told):
    columns = {"sampling_ratio_mean": about(0.06), "mismatch_kl": about(0.002)}
    assert told(ThrottledUpdate(), columns)[-1] == (33, "critical", "stopped")


@pytest.mark.parametrize("weight", [0.75, 0.99, 1.0, 1.4])
def test_weights_near_one_are_silent(told, weight):
    assert told(ThrottledUpdate(), {"sampling_ratio_mean": about(weight), "mismatch_logp_diff": about(0.02)}) == []


def test_a_real_gap_is_not_a_throttle(told):
    assert told(ThrottledUpdate(), {"sampling_ratio_mean": about(0.5), "mismatch_logp_diff": about(0.6)}) == []
    assert told(ThrottledUpdate(), {"sampling_ratio_mean": about(0.5), "mismatch_kl": about(0.2)}) == []


def test_weights_alone_do_not_tell(told):
    assert told(ThrottledUpdate(), {"sampling_ratio_mean": about(0.3)}) == []


@pytest.mark.parametrize(
    ("name", "level", "clause"),
    [("mismatch_ess", 0.2, "few_count"), ("mismatch_chi2", 1.5, "uneven"), ("sampling_ratio_std", 1.3, "uneven")],
)
def test_uneven_weights(told, name, level, clause):
    assert told(ImportanceWeightsDegenerate(), {name: about(level)}) == [(13, "warning", clause)]


@pytest.mark.parametrize(("name", "level"), [("mismatch_ess", 0.6), ("mismatch_chi2", 0.3), ("sampling_ratio_std", 0.5)])
def test_usual_weights_are_silent(told, name, level):
    spikes = np.where(AT % 12 == 0, 0.05 if name == "mismatch_ess" else 5.0, level)
    assert told(ImportanceWeightsDegenerate(), {name: spikes}) == []


@pytest.mark.parametrize(
    ("name", "level", "clause"),
    [("mismatch_kl", 0.2, "apart"), ("mismatch_kl", -0.2, "apart"), ("mismatch_ratio", 1.1, "apart"),
     ("mismatch_logp_diff", 0.5, "apart"), ("mismatch_prob_corr", 0.7, "unlike")],
)  # fmt: skip
def test_a_gap_from_the_first_row_on(told, name, level, clause):
    assert told(SamplerMismatch(), {name: level * about(1.0, 0.01)}) == [(13, "warning", clause)]


@pytest.mark.parametrize(
    ("name", "level"),
    [("mismatch_kl", 0.001), ("mismatch_ratio", 1.01), ("mismatch_logp_diff", 0.02), ("mismatch_prob_corr", 0.99)],
)
def test_engines_that_agree_are_silent_and_so_are_lone_spikes(told, name, level):
    values = level * about(1.0, 0.001)
    assert told(SamplerMismatch(), {name: values}) == []
    spikes = np.where(AT % 10 == 0, 0.5 if name == "mismatch_prob_corr" else 3.0, values)
    assert told(SamplerMismatch(), {name: spikes}) == []


def test_a_kl_above_that_of_healthy_runs_is_a_note(told):
    assert told(SamplerMismatch(), {"mismatch_kl": about(0.03)}) == [(13, "note", "above_usual")]


def test_the_age_of_responses_is_named(judge):
    (anomaly,) = judge(SamplerMismatch(), {"mismatch_kl": about(0.3), "staleness_mean": about(3.0, 0.0)})
    assert anomaly.message.endswith("(responses are 3 updates old).")
