"""A reward that falls and stays down, and all the falls that are none."""

from __future__ import annotations

import numpy as np
import pytest

from rldk.detectors.reward.policy_collapse import PolicyCollapse

ROWS = 400
AT = np.arange(ROWS)
LEARNT = np.clip(0.1 + AT / 150.0, 0.0, 0.8)


def noise(scale: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, scale, ROWS)


def fallen(to: float = 0.1, until: int = ROWS) -> np.ndarray:
    """A reward of 0.8 that is gone from row 200 on."""
    return np.where((AT >= 200) & (until > AT), to, LEARNT) + noise(0.01)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("scale", "offset"), [(1.0, 0.0), (0.001, 0.0), (100.0, -50.0), (1.0, -5.0)])
def test_learning_is_silent(where, scale, offset, seed):
    assert where(PolicyCollapse(), {"reward_mean": offset + scale * (LEARNT + noise(0.05, seed))}) == []


def test_deep_dips_that_recover_are_silent(where):
    dips = np.where((AT > 100) & (AT % 40 < 7), 0.0, LEARNT)
    assert where(PolicyCollapse(), {"reward_mean": dips + noise(0.02)}) == []


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_zeros_and_ones_are_silent(where, rate):
    assert where(PolicyCollapse(), {"reward_mean": (np.random.default_rng(3).random(ROWS) < rate).astype(float)}) == []


def test_a_fall_within_the_noise_is_silent(where):
    assert where(PolicyCollapse(), {"reward_mean": np.where(AT < 200, 0.5, 0.2) + noise(0.8)}) == []


def test_a_mean_that_falls_is_told_where_rows_differ_by_more(clauses):
    right = np.random.default_rng(5).random(ROWS) < np.where(AT < 200, 0.8, 0.2)  # one question per row
    ((row, severity, clause),) = clauses(PolicyCollapse(), {"reward_mean": right.astype(float)})
    assert row > 200 and (severity, clause) == ("warning", "declines")


def test_a_mean_that_falls_by_several_spreads(clauses):
    reward = np.where(AT < 200, np.clip(0.1 + 0.007 * AT, 0.1, 0.8), 0.1) + noise(0.15)
    assert clauses(PolicyCollapse(), {"reward_mean": reward}) == [(224, "warning", "stays_down")]
    assert clauses(PolicyCollapse(), {"reward_mean": np.where(AT < 200, 0.5, 0.48) + noise(0.05)}) == []


def test_a_fall_of_a_few_spreads_that_lasts(clauses):
    """Seven tenths of the gain are lost in one row and stay lost: too little beside the noise of a row to be told sooner."""
    rows = np.arange(100)
    reward = np.where(rows < 40, 0.05 + 0.02 * rows, 0.3) + np.random.default_rng(3).normal(0.0, 0.11, 100)
    ((row, severity, clause),) = clauses(PolicyCollapse(), {"reward_mean": reward})
    assert 60 < row < 95 and (severity, clause) == ("warning", "stays_down")
    assert clauses(PolicyCollapse(), {"reward_mean": np.where(rows < 62, reward, 0.85)}) == []  # it comes back


def test_a_mean_that_loses_five_spreads_is_critical(clauses):
    """The first fall is forgiven by the second rule, since the run came back from one as deep."""
    reward = np.where(((AT > 120) & (AT < 140)) | (AT > 250), 0.2, 0.8) + noise(0.01)
    assert clauses(PolicyCollapse(), {"reward_mean": reward})[-1] == (278, "critical", "lost_on_average")


def test_a_fall_at_an_even_pace_from_the_start(clauses):
    far = clauses(PolicyCollapse(), {"reward_mean": 0.8 - 0.004 * AT + noise(0.1)})
    assert far == [(92, "warning", "declines"), (190, "critical", "declines_far")]
    assert clauses(PolicyCollapse(), {"reward_mean": 0.8 - 0.0001 * AT + noise(0.05)}) == []


def test_a_fall_is_waited_out_for_a_tenth_of_the_run(judge):
    (critical,) = judge(PolicyCollapse(), {"reward_mean": fallen(until=300)})
    assert (critical.index, critical.severity, critical.clause, critical.since) == (224, "critical", "lost", 202)
    assert (critical.cleared_index, critical.last_good_step) == (321, 198)
    assert "The reward fell from 0.81" in critical.message and "stays down" in critical.message


@pytest.mark.parametrize("zero", [0.0, -40.0, 100.0])
@pytest.mark.parametrize("scale", [1.0, 0.01, 1000.0])
def test_four_fifths_of_the_gain_are_critical_at_any_zero_and_scale(clauses, zero, scale):
    reward = scale * (zero + fallen(to=0.24))
    assert clauses(PolicyCollapse(), {"reward_mean": reward}) == [(224, "critical", "lost")]


@pytest.mark.parametrize(("to", "worst"), [(0.3, "critical"), (0.45, "warning"), (0.6, "")])
def test_how_much_must_be_lost(where, to, worst):
    assert [severity for _, severity in where(PolicyCollapse(), {"reward_mean": fallen(to)})][-1:] == ([worst] if worst else [])


def test_a_fall_far_below_the_start_is_critical_sooner(clauses):
    assert clauses(PolicyCollapse(), {"reward_mean": fallen(to=-1.2)}) == [(209, "critical", "lost")]


def test_a_dip_of_fourteen_rows_is_a_warning_at_most(where):
    dip = np.where((AT > 200) & (AT < 215), 0.05, 0.8) + noise(0.01)
    assert [severity for _, severity in where(PolicyCollapse(), {"reward_mean": dip})] in ([], ["warning"])


def test_with_another_channel_out_of_its_range_less_of_a_fall_is_critical_at_once(judge):
    entropy = np.where(AT < 200, 1.5, 0.01)
    (anomaly,) = judge(PolicyCollapse(), {"reward_mean": fallen(to=0.5), "entropy_mean": entropy})
    assert (anomaly.index, anomaly.severity, anomaly.clause, anomaly.since) == (205, "critical", "lost_with_damage", 202)
    assert "while entropy fell from 1.5 to 0.01" in anomaly.message
    assert judge(PolicyCollapse(), {"reward_mean": fallen(to=0.6), "entropy_mean": entropy}) == []


@pytest.mark.parametrize(
    ("words", "name", "before", "after", "unit"),
    [
        ("entropy rose from 1 to 5", "entropy_mean", 1.0, 5.0, ""),
        ("the share of responses that emit the end token fell", "truncated_frac", 0.1, 0.95, ""),
        ("KL from the reference is 3.5", "kl_mean", 0.05, 3.5, "token"),
        ("KL from the reference is 90", "kl_mean", 5.0, 90.0, "sequence"),
        ("held-out perplexity rose", "eval_perplexity", 10.0, 30.0, ""),
        ("the log-probability of chosen answers fell", "chosen_logp_mean", -20.0, -90.0, ""),
    ],
)
def test_every_channel_that_is_damage_by_itself(judge, words, name, before, after, unit):
    columns = {"reward_mean": fallen(to=0.4), name: np.where(AT < 200, before, after)}
    (anomaly,) = judge(PolicyCollapse(), columns, {"kl_mean": unit} if unit else None)
    assert (anomaly.index, anomaly.severity, anomaly.clause) == (205, "critical", "lost_with_damage")
    assert words in anomaly.message


@pytest.mark.parametrize(
    ("name", "values", "unit"),
    [
        ("rollout_length_mean", np.where(AT < 200, 100.0, 900.0), ""),
        ("reward_std", np.where(AT % 8 < 3, 0.5, 0.0), ""),
        ("kl_mean", np.where(AT < 200, 1.0, 9.0), "sequence"),
    ],
    ids=["length", "a spread that touches zero", "nine nats per response"],
)
def test_what_is_no_damage_by_itself(clauses, name, values, unit):
    columns = {"reward_mean": fallen(to=0.45), name: values}
    assert clauses(PolicyCollapse(), columns, {"kl_mean": unit} if unit else None) == [(224, "warning", "slipping")]


def test_share_and_patience_can_be_set(clauses):
    assert clauses(PolicyCollapse(share=0.95), {"reward_mean": fallen(to=0.24)}) == [(224, "warning", "slipping")]
    assert clauses(PolicyCollapse(persist=3), {"reward_mean": fallen()}) == [(204, "critical", "lost")]


def test_a_short_log_is_waited_for_less(where):
    short = np.concatenate([np.full(30, 0.8), np.full(30, 0.05)]) + noise(0.01)[:60]
    assert where(PolicyCollapse(), {"reward_mean": short}) == [(39, "critical")]


SHORT = np.array([0.9, 0.95, 0.17, 0.03, *[0.01] * 20])


def test_all_that_is_lost_within_the_first_rows(judge):
    (anomaly,) = judge(PolicyCollapse(), {"reward_mean": SHORT, "entropy_mean": [0.2, 0.2, 3.0, *[7.0] * 21]})
    assert (anomaly.index, anomaly.severity, anomaly.clause) == (6, "critical", "few_rows_with_damage")
    assert anomaly.message.startswith("The reward fell from 0.9 to at most 0.17 in the last 5 rows, while entropy rose")
    assert anomaly.cleared_index is None


@pytest.mark.parametrize("row", [5, 6, 7, 12])
def test_a_fall_that_stands_survives_a_restart(broken_off, judge, row):
    columns = {"reward_mean": SHORT, "entropy_mean": [0.2, 0.2, 3.0, *[7.0] * 21]}
    assert broken_off(PolicyCollapse, columns, row) == judge(PolicyCollapse(), columns)


@pytest.mark.parametrize(
    "columns",
    [
        {"reward_mean": [0.9, *[0.01, 0.03, 0.02] * 7], "entropy_mean": [0.2, *[7.0] * 21]},
        {"reward_mean": [1.0, 1.0, *[0.0, 1.0, 0.0] * 7], "entropy_mean": [0.2, 0.2, *[7.0] * 21]},
    ],
    ids=["a single good row", "zeros and ones"],
)
def test_a_low_reward_after_good_first_rows_is_silent(where, columns):
    assert where(PolicyCollapse(), columns) == []


FELL = [0.44, 0.4, 0.52, 0.63, 0.68, 0.74, 0.79, 0.8, 0.83, 0.72, 0.7, 0.61, 0.54, 0.55, 0.53, 0.52, 0.54]


def test_a_fall_in_few_rows(told):
    assert told(PolicyCollapse(), {"reward_mean": FELL}) == [(16, "warning", "few_rows")]
    broken = {"reward_mean": FELL, "entropy_mean": [0.4] * 11 + [1.5, 2.0, 3.0, 3.2, 3.2, 3.1]}
    assert told(PolicyCollapse(), broken)[-1] == (16, "critical", "few_rows_with_damage")


@pytest.mark.parametrize("rows", [FELL[:9], FELL[:14], [*FELL[:14], 0.8, 0.82], [0.5, 0.9, 0.4, 0.8, 0.6, 0.2, 0.3, 0.3]])
def test_few_rows_that_rise_dip_or_are_noise_are_silent(told, rows):
    assert told(PolicyCollapse(), {"reward_mean": rows}) == []


def test_a_fall_in_few_rows_stands_while_the_reward_stays_down(judge):
    (anomaly,) = judge(PolicyCollapse(), {"reward_mean": [*FELL, *[0.54, 0.52] * 15]})
    assert anomaly.clause == "few_rows" and anomaly.cleared_index is None
    (anomaly,) = judge(PolicyCollapse(), {"reward_mean": [*FELL, *[0.84, 0.86] * 15]})
    assert anomaly.cleared_index is not None


SLIDE = 0.5 - 0.4 * AT[:60] / 60.0 + np.random.default_rng(4).normal(0.0, 0.1, 60)
ENTROPY, TRUNCATED = np.linspace(1.0, 0.15, 60), np.linspace(0.0, 0.6, 60)


def test_a_noisy_decline_is_critical_if_two_other_channels_go_with_it(told):
    columns = {"reward_mean": SLIDE, "entropy_mean": ENTROPY, "truncated_frac": TRUNCATED}
    found = told(PolicyCollapse(), columns)
    assert [said for _, *said in found] == [["critical", "declines_with_others"]]
    for other in ("entropy_mean", "truncated_frac"):
        assert told(PolicyCollapse(), {"reward_mean": SLIDE, other: columns[other]}) == []
    assert told(PolicyCollapse(), {**columns, "reward_mean": SLIDE[::-1]}) == []


def test_a_reward_far_below_its_first_row(told):
    """All was lost in the first update: there is no best to fall from but that one row."""
    spread, lost = np.full(40, 0.5), np.where(AT[:40] == 0, 1.0, 0.1) + noise(0.1)[:40]
    ((row, *said),) = told(PolicyCollapse(), {"reward_mean": lost, "reward_std": spread})
    assert said == ["warning", "below_start"] and row <= 22
    ended = {"truncated_frac": np.where(AT[:40] == 0, 0.0, 0.6)}
    found = told(PolicyCollapse(), {"reward_mean": lost, "reward_std": spread, **ended})
    assert found[-1][1:] == ("critical", "below_start_with_damage")
    assert told(PolicyCollapse(), {"reward_mean": lost, "reward_std": 3.0 * spread}) == []
    assert told(PolicyCollapse(), {"reward_mean": lost}) == []


def test_a_reward_that_stays_below_its_first_rows_by_half_a_spread(told):
    spread, lost = np.full(80, 0.5), np.where(AT[:80] < 20, 0.6, 0.3) + noise(0.08, 5)[:80]
    ((row, *said),) = told(PolicyCollapse(), {"reward_mean": lost, "reward_std": spread})
    assert said == ["warning", "below_start"] and 28 <= row <= 40
    assert told(PolicyCollapse(), {"reward_mean": lost[::-1], "reward_std": spread}) == []
    few = 0.6 + noise(0.25, 6)[:80]  # four responses per row: half a spread is chance
    assert told(PolicyCollapse(), {"reward_mean": few, "reward_std": spread}) == []
    prompts = {"reward_mean": 10.0 * lost, "reward_std": spread}  # rows differ by more than their responses
    assert "below_start" not in [clause for _, _, clause in told(PolicyCollapse(), prompts)]
