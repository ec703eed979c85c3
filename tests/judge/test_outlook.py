"""What is said about the future of a run: honest about what cannot be told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rldk import scan
from rldk.functional.convergence import forecast
from rldk.judge.outlook import outlook

STEPS = np.arange(1, 121)
NOISE = np.random.default_rng(3).normal(0.0, 0.02, len(STEPS))
RISES = 0.2 + 0.6 * (1.0 - np.exp(-STEPS / 60.0)) + NOISE


def told(tmp_path: Path, rewards: np.ndarray, **more: np.ndarray) -> list[str]:
    log = tmp_path / "run.jsonl"
    rows = ({"step": int(step), "reward_mean": float(reward), **{key: float(of[row]) for key, of in more.items()}}
            for row, (step, reward) in enumerate(zip(STEPS, rewards, strict=True)))  # fmt: skip
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return outlook(scan(log).results[0])


def test_a_rising_reward_has_a_level_a_step_and_an_interval(tmp_path):
    (sentence,) = told(tmp_path, RISES)
    assert "is rising and would settle at 0.7" in sentence or "is rising and would settle at 0.8" in sentence
    assert "If the run went on to step 239" in sentence and "80 % of healthy runs" in sentence


def test_a_reward_without_a_trend_is_not_predicted(tmp_path):
    (sentence,) = told(tmp_path, 0.5 + NOISE)
    assert "has no trend" in sentence and "cannot be predicted" in sentence


def test_a_change_of_the_learning_rate_is_told_with_what_the_reward_did(tmp_path):
    sentences = told(tmp_path, np.where(STEPS < 60, 0.3, 0.6) + NOISE, lr=np.where(STEPS < 60, 1e-5, 1e-6))
    assert any("went from 1e-05 to 1e-06 at step 60" in one and "the mean reward" in one for one in sentences)


def test_a_schedule_is_not_told_as_changes_and_a_constant_end_is_expected_where_it_is(tmp_path):
    sentences = told(tmp_path, np.minimum(0.2 + STEPS / 100, 1.0), lr=1e-6 * (1 - STEPS / 400))
    assert sentences == [
        "reward_mean has settled at 1. If the run went on to step 239, it is expected to be 1 (true of 80 % of healthy runs)."
    ]


def test_a_critical_run_has_no_outlook(tmp_path):
    assert told(tmp_path, np.where(STEPS > 60, np.nan, RISES)) == []


@pytest.mark.parametrize("scale", [-3.0, 0.5, 20.0])
def test_a_forecast_follows_the_scale_and_mirrors_the_sign(scale):
    plain, scaled = forecast(STEPS, 2.0 + RISES, 240), forecast(STEPS, scale * (2.0 + RISES), 240)
    assert plain is not None and scaled is not None
    assert sorted((scale * plain.low, scale * plain.high)) == pytest.approx([scaled.low, scaled.high])


def test_a_share_stays_between_0_and_1():
    high = np.minimum(0.99 * (1.0 - np.exp(-STEPS / 30.0)) + NOISE, 1.0)
    found = forecast(STEPS, np.maximum(high, 0.0), 240)
    assert found is not None and found.high <= 1.0


def test_few_points_are_not_predicted():
    assert forecast([1, 2, 3], [0.0, 1.0, 2.0], 6) is None
