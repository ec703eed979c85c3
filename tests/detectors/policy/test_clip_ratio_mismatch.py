"""Updates that leave the region PPO trusts, and a sampler that is not the policy."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.core.event import Event
from rldk.detectors.policy.clip_saturation import ClipSaturation
from rldk.detectors.policy.ratio_explosion import RatioExplosion
from rldk.detectors.policy.train_inference_mismatch import TrainInferenceMismatch
from rldk.judge.engine import Engine

ROWS = 200
AT = np.arange(ROWS)


def noise(scale: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scale, ROWS)


def between(inside: float, outside: float) -> np.ndarray:
    """A value from row 100 to 149, and another before and after."""
    return np.where((AT >= 100) & (AT < 150), inside, outside)


@pytest.mark.parametrize("level", [0.0, 0.02, 0.25, 0.33])
def test_usual_clipping_is_silent(where, level):
    assert where(ClipSaturation(), {"clip_frac": np.clip(level + level * noise(0.02), 0.0, 1.0)}) == []


def test_lone_batches_that_clip_are_silent(where):
    assert where(ClipSaturation(), {"clip_frac": np.where(AT % 10 < 2, 0.9, 0.1)}) == []


def test_most_tokens_clipped(judge):
    (anomaly,) = judge(ClipSaturation(), {"clip_frac": between(0.7, 0.1), "lr": np.full(ROWS, 3e-5)})
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.cleared_index) == (109, "warning", 102, 156)
    assert anomaly.message == "70% of the tokens are clipped."
    assert "The learning rate is 3e-05 now." in anomaly.advice


def test_the_learning_rate_is_not_named_where_it_is_not_logged(judge):
    (anomaly,) = judge(ClipSaturation(), {"clip_frac": between(0.7, 0.1)})
    assert anomaly.advice == ClipSaturation.advice


def test_clipping_is_a_note_while_the_reward_rises_and_nothing_is_damaged(told):
    clipped = np.where(AT < 60, 0.1, 0.45)
    rising, falling = 0.02 * AT + noise(0.05), 2.0 - 0.02 * np.maximum(AT - 60, 0) + noise(0.05)
    found = told(ClipSaturation(), {"clip_frac": clipped, "reward_mean": rising})
    assert {severity for _, severity, _ in found} == {"note"}
    assert [row for row, severity, _ in told(ClipSaturation(), {"clip_frac": clipped, "reward_mean": falling})] == [69]


def test_a_third_clipped_is_told_after_eight_rows(told):
    assert told(ClipSaturation(), {"clip_frac": np.full(50, 0.36)}) == [(11, "warning", "saturated")]
    assert told(ClipSaturation(), {"clip_frac": np.full(11, 0.36)}) == []


@pytest.mark.parametrize(
    ("limit", "found"),
    [(0.005, [(0, "note", "narrow")]), (0.02, []), (0.2, []), (4.0, []), (6.0, [(0, "note", "wide")])],
)
def test_a_clip_range_that_leaves_no_room_or_clips_nothing(told, limit, found):
    assert told(ClipSaturation(), {"clip_range": np.full(20, limit)}) == found


@pytest.mark.parametrize("seed", range(3))
def test_a_ratio_near_one_is_silent_whatever_its_maximum(where, seed):
    usual = {"ratio_mean": 1.0 + noise(0.05, seed), "ratio_std": 0.3 * np.exp(noise(0.5, seed)), "ratio_max": 30.0 + noise(5.0)}
    assert where(RatioExplosion(), usual) == []


@pytest.mark.parametrize("level", [3.0, 0.68, 0.3])
def test_a_mean_ratio_off_by_more_than_a_quarter(judge, level):
    (anomaly,) = judge(RatioExplosion(), {"ratio_mean": between(level, 1.0)})
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.cleared_index) == (111, "warning", 102, 156)
    assert f"is {level:g}." in anomaly.message


@pytest.mark.parametrize("level", [30.0, 0.05, 0.0, -1.0])
def test_off_by_more_than_ten_it_is_critical(where, level):
    assert where(RatioExplosion(), {"ratio_mean": between(level, 1.0)}) == [(105, "critical")]


def test_a_mean_ratio_that_the_kl_of_the_update_contradicts_is_no_mean(where):
    """Half of the places of TRL's statistics stay empty with two minibatches and two accumulation steps."""
    halved = {"ratio_mean": np.full(ROWS, 0.5), "kl_update": np.full(ROWS, 1e-3)}
    assert where(RatioExplosion(), halved) == []
    assert where(RatioExplosion(), {**halved, "ratio_mean": np.full(ROWS, 0.4), "kl_update": np.full(ROWS, 0.3)}) != []


def test_a_ratio_that_never_varies_is_a_setting(where):
    assert where(RatioExplosion(), {"ratio_mean": np.full(ROWS, 0.25)}) == []


def test_a_wide_ratio(judge):
    (anomaly,) = judge(RatioExplosion(), {"ratio_mean": np.ones(ROWS), "ratio_std": between(8.0, 0.1)})
    assert (anomaly.index, anomaly.severity) == (105, "warning")
    assert "with a spread of 8" in anomaly.message


@pytest.mark.parametrize(("before", "found"), [(0.05, [(102, "warning")]), (0.2, [])])
def test_a_ratio_of_a_spread_of_two_is_wide_if_it_was_narrow(where, before, found):
    spread = np.where(np.arange(200) < 97, before, 2.0)
    assert where(RatioExplosion(), {"ratio_mean": np.ones(200), "ratio_std": spread}) == found


def test_a_wide_ratio_is_judged_by_the_spread(judge):
    (anomaly,) = judge(RatioExplosion(), {"ratio_std": between(8.0, 0.1)})
    assert (anomaly.value, anomaly.threshold) == (8.0, 5.0)


@pytest.mark.parametrize("name", ["mismatch_kl", "mismatch_logp_diff", "mismatch_prob_diff", "mismatch_masked_frac"])
def test_a_small_gap_and_lone_spikes_are_silent(where, name):
    gap = 0.002 * np.exp(noise(0.5)) + np.where(AT % 20 == 7, 0.9, 0.0)
    assert where(TrainInferenceMismatch(), {name: gap}) == []


def test_a_gap_there_from_the_start_is_how_the_run_is(where):
    assert where(TrainInferenceMismatch(), {"mismatch_kl": 0.2 * np.exp(noise(0.3))}) == []


def test_a_gap_that_has_grown_tenfold_and_is_small_still_is_silent(where):
    assert where(TrainInferenceMismatch(), {"mismatch_kl": between(0.01, 0.0005)}) == []


@pytest.mark.parametrize(
    ("name", "inside"),
    [("mismatch_kl", 0.1), ("mismatch_logp_diff", 0.5), ("mismatch_prob_diff", 0.3), ("mismatch_masked_frac", 0.6)],
)
def test_a_gap_that_has_grown_and_lasts(judge, name, inside):
    (anomaly,) = judge(TrainInferenceMismatch(), {name: between(inside, 0.002)})
    assert (anomaly.index, anomaly.severity, anomaly.since, anomaly.cleared_index) == (111, "warning", 102, 156)
    assert anomaly.message.startswith(f"{name} is {inside:g}, ")


@pytest.mark.parametrize(
    ("passes", "settings", "clauses"),
    [
        (4.0, None, ["narrow", "no_room"]),
        (1.0, None, ["narrow"]),  # with one pass the ratio is 1 throughout
        (4.0, {"importance_sampling_level": "sequence"}, ["narrow"]),
    ],
)
def test_a_tiny_clip_range_is_a_warning_where_batches_are_used_several_times(told, passes, settings, clauses):
    stream = {"clip_range": np.full(20, 5e-4), "num_iterations": np.full(20, passes)}
    found = told(ClipSaturation(), stream, None, settings)
    assert [clause for _, _, clause in found] == clauses
    assert [severity for _, severity, _ in found] == ["note", "warning"][: len(clauses)]


ONCE = {"steps_per_generation": 4, "gradient_accumulation_steps": 4}


@pytest.mark.parametrize(
    ("share", "settings", "found"),
    [
        (0.15, ONCE, ["on_policy"]),
        (0.0, ONCE, []),
        (0.15, {**ONCE, "steps_per_generation": 16}, []),
        (0.15, None, []),
    ],
)
def test_tokens_that_are_clipped_in_the_only_update_of_a_batch(told, share, settings, found):
    stream = {"clip_frac": np.full(30, share), "num_iterations": np.ones(30)}
    assert [clause for *_, clause in told(ClipSaturation(), stream, None, settings)] == found
    twice = {**stream, "num_iterations": np.full(30, 2.0)}
    assert told(ClipSaturation(), twice, None, settings) == []


def test_a_sampler_of_another_engine_may_clip_tokens(told):
    stream = {"clip_frac": np.full(30, 0.15), "num_iterations": np.ones(30), "mismatch_kl": np.full(30, 0.001)}
    assert told(ClipSaturation(), stream, None, ONCE) == []


def test_advice_fits_what_was_found():
    engine = Engine([ClipSaturation()])
    engine.take_settings(ONCE)
    for step in range(30):
        engine.observe(Event(step, {"clip_frac": 0.15, "num_iterations": 1.0}))
    assert [one.advice.partition(":")[0] for one in engine.anomalies] == ["Check where the old log-probabilities come from"]
