"""Experts with uneven load or other routes than in the sampler, and tools that are not used any more."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.policy.expert_imbalance import ExpertImbalance
from rldk.detectors.policy.tools_abandoned import ToolsAbandoned

ROWS = 120
AT = np.arange(ROWS)
LATE = AT >= 60


def noisy(values: np.ndarray | float, seed: int = 0) -> np.ndarray:
    return np.asarray(values) * np.exp(np.random.default_rng(seed).normal(0.0, 0.03, ROWS))


def test_a_busy_expert(told, judge):
    columns = {"expert_violation_max": noisy(np.where(LATE, 3.0, 0.5))}
    assert told(ExpertImbalance(), columns) == [(81, "warning", "uneven")]
    (anomaly,) = judge(ExpertImbalance(), columns)
    assert anomaly.message.startswith("The busiest expert has 4 times its fair share; at the start it had 1.5")


@pytest.mark.parametrize("level", [0.3, 2.0, 8.0])
def test_experts_that_stay_as_they_began_are_silent(told, level):
    assert told(ExpertImbalance(), {"expert_violation_max": noisy(level)}) == []


def test_a_load_balancing_loss_that_doubles(told):
    assert told(ExpertImbalance(), {"aux_loss": noisy(np.where(LATE, 0.05, 0.02))}) == [(81, "warning", "loss_grown")]
    assert told(ExpertImbalance(), {"aux_loss": noisy(np.where(LATE, 0.03, 0.02))}) == []


def test_routes_that_are_not_replayed(told):
    assert told(ExpertImbalance(), {"routing_fallback_frac": noisy(0.2)}) == [(8, "warning", "not_replayed")]
    assert told(ExpertImbalance(), {"routing_fallback_frac": np.zeros(ROWS)}) == []


def test_a_gap_between_the_engines_of_a_mixture_of_experts_is_a_note(told):
    columns = {"expert_violation_max": noisy(0.4), "mismatch_kl": noisy(0.03)}
    assert told(ExpertImbalance(), columns) == [(13, "note", "routing_differs")]
    assert told(ExpertImbalance(), {**columns, "mismatch_kl": noisy(0.002)}) == []


def test_tools_that_are_not_called_any_more_while_the_reward_rises(told, judge):
    columns = {"tool_calls_mean": noisy(np.where(LATE, 0.1, 2.0)), "reward_mean": 0.2 + AT / ROWS}
    assert told(ToolsAbandoned(), columns) == [(76, "warning", "fewer_calls")]
    (anomaly,) = judge(ToolsAbandoned(), columns)
    assert "it had 2" in anomaly.message


def test_turns_that_fall_to_two_where_the_prompt_is_counted(told):
    assert told(ToolsAbandoned(), {"turns_mean": np.where(LATE, 2.02, 5.0)}) == [(76, "warning", "fewer_turns")]
    assert told(ToolsAbandoned(), {"turns_mean": np.where(LATE, 1.05, 4.0)}) == [(76, "warning", "fewer_turns")]


@pytest.mark.parametrize("turns", [np.full(ROWS, 2.0), np.full(ROWS, 1.0), 5.0 - 2.0 * AT / ROWS, 2.0 + AT / 20])
def test_episodes_that_never_had_calls_or_still_have_them_are_silent(told, turns):
    assert told(ToolsAbandoned(), {"turns_mean": turns}) == []


def test_few_calls_from_the_start_are_silent(told):
    assert told(ToolsAbandoned(), {"tool_calls_mean": noisy(np.where(LATE, 0.02, 0.3))}) == []
