"""A learning rate of nothing."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.run.learning_rate_too_low import LearningRateTooLow

ROWS = 300
AT = np.arange(ROWS)
ZERO = np.zeros(ROWS)
FLAT = 0.5 + np.random.default_rng(0).normal(0.0, 0.02, ROWS)
NEVER = [(19, "critical", "zero")]


def test_a_rate_of_zero_since_the_first_row_is_critical_after_twenty(told):
    assert told(LearningRateTooLow(), {"lr": ZERO}) == NEVER
    assert told(LearningRateTooLow(), {"policy_lr": ZERO, "reward_mean": FLAT}) == NEVER
    assert told(LearningRateTooLow(), {"lr": ZERO[:19]}) == []


def test_a_kl_that_does_not_grow_is_an_estimate_of_zero(told):
    """A KL per response that is estimated from samples scatters about zero, by far more than rounding."""
    kl = 2e-3 + np.random.default_rng(1).normal(0.0, 5e-4, ROWS)
    assert told(LearningRateTooLow(), {"lr": ZERO, "reward_mean": FLAT, "kl_mean": kl}) == NEVER


def test_a_rate_that_was_rounded_when_it_was_printed_is_silent(told):
    assert told(LearningRateTooLow(), {"lr": ZERO, "kl_mean": 1e-3 * AT}) == []
    assert told(LearningRateTooLow(), {"lr": ZERO, "weight_change": np.full(ROWS, 1e-6)}) == []
    assert told(LearningRateTooLow(), {"lr": ZERO, "weight_change": ZERO, "reward_mean": FLAT + AT / 100.0}) == NEVER


@pytest.mark.parametrize(
    "share",
    [np.minimum(AT / 30.0, 1.0), 1.0 - AT / ROWS, 0.5 + 0.5 * np.cos(np.pi * AT / (ROWS - 1)), np.where(AT < 294, 1.0, 0.0)],
    ids=["warm-up", "linear", "cosine", "a few last rows"],
)
def test_schedules_are_silent(told, share):
    assert told(LearningRateTooLow(), {"lr": 1e-5 * share}) == []


def test_a_rate_that_is_gone_while_the_run_goes_on_is_a_warning(told):
    assert told(LearningRateTooLow(), {"lr": np.where(AT < 200, 1e-5, 1e-9)}) == [(217, "warning", "gone")]
    assert told(LearningRateTooLow(), {"lr": np.where(AT < 200, 1e-5, 2e-8)}) == []


def test_a_rate_that_is_printed_with_one_digit_is_not_gone_while_preferences_are_learnt(told):
    printed = np.round(2e-6 * np.clip(1.0 - AT / 150.0, 0.0, 1.0), 6)
    learns = {"preference_margin": AT / 100.0}
    assert told(LearningRateTooLow(), {"lr": printed, **learns}) == []
    assert [clause for _, _, clause in told(LearningRateTooLow(), {"lr": printed})] == ["gone"]
