"""Samplers that leave out what the policy would write."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.policy.sampling_restricted import SamplingRestricted


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"top_k": 1.0}, ("critical", "greedy")),
        ({"top_p": 0.01}, ("critical", "greedy")),
        ({"top_p": 0.3, "top_k": 50.0}, ("warning", "restricted")),
        ({"top_k": 5.0}, ("warning", "restricted")),
        ({"repetition_penalty": 1.5, "top_p": 1.0}, ("warning", "restricted")),
        ({"repetition_penalty": 0.7}, ("warning", "restricted")),
        ({"repetition_penalty": 1.1}, ("note", "reduced")),
        ({"top_p": 0.8}, ("note", "reduced")),
        ({"top_k": 20.0}, ("note", "reduced")),
    ],
)
def test_a_restriction_is_told_in_the_first_row(told, settings, found):
    assert told(SamplingRestricted(), {name: np.full(5, value) for name, value in settings.items()}) == [(0, *found)]


@pytest.mark.parametrize(
    "settings", [{"top_p": 1.0, "top_k": 0.0, "repetition_penalty": 1.0}, {"top_k": 50.0}, {"top_k": -1.0}, {"top_p": 0.95}]
)
def test_what_recipes_use_is_silent(told, settings):
    assert told(SamplingRestricted(), {name: np.full(5, value) for name, value in settings.items()}) == []


def test_only_what_restricts_is_named(judge):
    (anomaly,) = judge(SamplingRestricted(), {"top_p": np.ones(5), "repetition_penalty": np.full(5, 1.5)})
    assert anomaly.message.endswith(": repetition_penalty 1.5.") and anomaly.value == 1.5
