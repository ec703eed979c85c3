"""A temperature that leaves nothing to explore, or nothing of the language."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.policy.temperature_wrong import TemperatureWrong


@pytest.mark.parametrize("value", [0.3, 0.7, 1.0, 1.2, 1.6])
def test_what_recipes_use_is_silent(told, value):
    assert told(TemperatureWrong(), {"temperature": np.full(20, value)}) == []


@pytest.mark.parametrize("value", [0.2, 1.7])
def test_an_unusual_one_is_a_warning_in_the_first_row(told, value):
    assert told(TemperatureWrong(), {"temperature": np.full(20, value)}) == [(0, "warning", "unusual")]


@pytest.mark.parametrize("value", [0.0, 0.05, 3.0])
def test_an_absurd_one_is_critical_in_the_first_row(judge, value):
    (anomaly,) = judge(TemperatureWrong(), {"temperature": np.full(20, value)})
    assert (anomaly.index, anomaly.severity, anomaly.clause) == (0, "critical", "absurd")
    assert f"It is {value:.3g} now." in anomaly.advice


def test_one_that_is_put_right_clears(judge):
    (anomaly,) = judge(TemperatureWrong(), {"temperature": np.where(np.arange(20) < 10, 3.0, 1.0)})
    assert anomaly.cleared_index == 12


@pytest.mark.parametrize("value", [np.nan, -1.0, 65.0])  # the last of a processor, in degrees
def test_a_number_that_is_no_temperature_is_silent(told, value):
    assert told(TemperatureWrong(), {"temperature": np.full(20, value)}) == []
