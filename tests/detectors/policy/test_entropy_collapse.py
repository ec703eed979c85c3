"""An entropy that is gone while the reward has nothing to show for it."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.policy.entropy_collapse import EntropyCollapse

ROWS = 300
AT = np.arange(ROWS)
GONE = np.where(AT < 150, 1.0, 0.02)


def noise(scale: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scale, ROWS)


def test_a_low_entropy_throughout_with_a_good_reward_is_silent(where):
    low = {"entropy_mean": 0.02 * np.exp(noise(0.5)), "reward_mean": 0.8 + noise(0.05)}
    assert where(EntropyCollapse(), low) == []


def test_a_tiny_entropy_from_the_start_has_nothing_to_lose(told):
    assert told(EntropyCollapse(), {"entropy_mean": np.where(AT < 100, 0.0009, 0.00001)}) == []


def test_a_low_entropy_that_sinks_further_is_a_warning(told):
    assert told(EntropyCollapse(), {"entropy_mean": np.where(AT < 100, 0.2, 0.006)}) == [(106, "warning", "gone")]


def test_an_entropy_that_falls_as_the_reward_rises_is_silent_until_it_is_gone(told):
    reward = np.clip(AT / 200.0, 0.05, 0.9) + noise(0.02)
    assert told(EntropyCollapse(), {"entropy_mean": np.maximum(np.exp(-AT / 30.0), 0.03), "reward_mean": reward}) == []
    gone = {"entropy_mean": np.maximum(np.exp(-AT / 30.0), 0.01), "reward_mean": reward}
    assert told(EntropyCollapse(), gone) == [(124, "warning", "gone")]


@pytest.mark.parametrize("share", [0.5, 0.15])
def test_a_fall_to_more_than_a_tenth_is_silent(where, share):
    assert where(EntropyCollapse(), {"entropy_mean": np.where(AT < 150, 1.0, share) + noise(0.01)}) == []


def test_an_entropy_that_falls_in_supervised_training_is_silent(where):
    learning = {"entropy_mean": np.maximum(6.0 * np.exp(-AT / 30.0), 0.1), "token_accuracy": np.clip(AT / 200.0, 0.0, 0.9)}
    assert where(EntropyCollapse(), learning) == []
    with_reward = {**learning, "reward_mean": 0.9 - AT / 400.0}
    assert where(EntropyCollapse(), with_reward) != []


def test_nine_tenths_lost_is_a_warning(judge):
    (anomaly,) = judge(EntropyCollapse(), {"entropy_mean": np.where((AT >= 150) & (AT < 200), 0.02, 1.0)})
    assert (anomaly.index, anomaly.severity, anomaly.clause) == (171, "warning", "fallen")
    assert (anomaly.since, anomaly.cleared_index) == (152, 209)
    assert anomaly.message.startswith("Entropy fell from 1 to 0.02 nats per token")


@pytest.mark.parametrize(("level", "clause"), [(0.015, "gone"), (1e-5, "dead")])
def test_below_what_any_healthy_run_loses_it_is_critical_after_five_rows(told, level, clause):
    assert told(EntropyCollapse(), {"entropy_mean": np.where(AT < 150, 1.0, level)}) == [(156, "critical", clause)]
    four = np.where((AT >= 150) & (AT < 154), level, 1.0)
    assert told(EntropyCollapse(), {"entropy_mean": four}) == []


@pytest.mark.parametrize("reward", [0.4 + noise(0.02), 0.8 - 0.7 * np.clip((AT - 160) / 10.0, 0.0, 1.0)], ids=["flat", "fallen"])
def test_a_reward_with_nothing_to_show_excuses_nothing(told, reward):
    assert told(EntropyCollapse(), {"entropy_mean": GONE, "reward_mean": reward}) == [(171, "warning", "fallen")]
    dead = {"entropy_mean": np.where(AT < 150, 1.0, 0.01), "reward_mean": reward}
    assert told(EntropyCollapse(), dead) == [(156, "critical", "gone")]


def test_a_solved_task_is_silent_until_the_entropy_is_gone(told):
    solved = {"entropy_mean": GONE, "reward_mean": np.clip(AT / 100.0, 0.0, 1.0)}
    assert told(EntropyCollapse(), solved) == []


def test_the_share_can_be_set(where):
    assert where(EntropyCollapse(share=0.01), {"entropy_mean": GONE}) == []


@pytest.mark.parametrize(("level", "clause"), [(0.01, "gone"), (1e-5, "dead")])
def test_a_rising_reward_makes_it_a_warning_only_while_no_other_channel_is_damaged(told, level, clause):
    rising = np.clip(AT / 400.0, 0.05, 0.9) + noise(0.005)
    columns = {"entropy_mean": np.where(AT < 200, 1.0, level), "reward_mean": rising}
    assert told(EntropyCollapse(), columns) == [(206, "warning", clause)]
    unending = {**columns, "eos_frac": np.where(AT < 200, 0.9, 0.0)}
    assert told(EntropyCollapse(), unending) == [(206, "critical", clause)]


def test_the_entropy_of_continuous_actions_is_not_judged(told):
    assert told(EntropyCollapse(), {"entropy_mean": np.linspace(1.4, -3.0, 100)}) == []


@pytest.mark.parametrize("where_logged", ["sequence", "token"])
@pytest.mark.parametrize(("whole", "critical"), [(0.05, True), (0.3, False)])
def test_one_text_per_prompt_is_critical_although_the_reward_rises(told, where_logged, whole, critical):
    """Without a length of responses the entropy of a whole one must be logged."""
    reward = AT / 20.0 + noise(0.1)
    token = np.where(AT < 150, 1.5, whole / 50.0)
    columns = {"entropy_mean": token, "reward_mean": reward, "kl_mean": np.full(ROWS, 0.1)}
    if where_logged == "sequence":
        columns["entropy_sequence"] = 50.0 * token
    else:
        columns["rollout_length_mean"] = np.full(ROWS, 50.0)
    said = told(EntropyCollapse(), columns)
    assert (said[-1][1:] == ("critical", "one_text")) is critical
    assert said[-1][0] < 165


def test_one_course_of_actions_may_be_the_best_of_a_control_task(told):
    columns = {
        "entropy_mean": np.where(AT < 150, 1.2, 0.002), "rollout_length_mean": np.full(ROWS, 20.0),
        "reward_mean": AT / 20.0 + noise(0.1),
    }  # fmt: skip
    assert {severity for _, severity, _ in told(EntropyCollapse(), columns)} == {"warning"}


def test_short_answers_that_become_sure_have_no_text_to_lose(told):
    columns = {
        "entropy_mean": np.where(AT < 150, 1.0, 0.02), "rollout_length_mean": np.full(ROWS, 2.0),
        "reward_mean": np.clip(AT / 200.0, 0.1, 0.9) + noise(0.02), "kl_mean": np.full(ROWS, 0.1),
    }  # fmt: skip
    assert "one_text" not in {clause for *_, clause in told(EntropyCollapse(), columns)}


def test_the_entropy_of_whole_responses_is_enough(told):
    fallen = {"entropy_sequence": np.where(AT < 150, 60.0, 0.05), "reward_mean": 0.5 + noise(0.1)}
    assert told(EntropyCollapse(), fallen) == [(156, "critical", "one_text")]
    assert told(EntropyCollapse(), {**fallen, "entropy_sequence": np.where(AT < 150, 60.0, 2.0)}) == []
