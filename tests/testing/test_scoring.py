"""What counts as told, false, late and well explained."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldk.core.errors import UsageError
from rldk.testing.scoring import Alarm, Judged, Label, Share, delay_quantiles, score_run, total_scores

FAILING = Label("r", "FAILING", "flip", ("reward", "policy"), "reward_flipped", injected=40, onset=50, updates=100)


def said(*alarms: Alarm, **more: object) -> Judged:
    return Judged(alarms, **more)  # type: ignore[arg-type]


def test_a_warning_of_an_accepted_family_after_the_onset_is_told_and_its_delay_counted() -> None:
    score = score_run(FAILING, said(Alarm(57, "warning", "reward")))
    assert (score.told, score.critical, score.delay, score.critical_delay, score.saved) == (True, False, 7, None, 0.0)
    assert score.false_warnings == score.false_criticals == 0


def test_an_alarm_between_injection_and_onset_is_right_and_without_delay() -> None:
    score = score_run(FAILING, said(Alarm(42, "critical", "policy")))
    assert (score.told, score.early, score.critical, score.delay, score.saved) == (True, True, True, 0, pytest.approx(0.58))
    assert score_run(FAILING, said(Alarm(50, "critical", "policy"))).early is False


def test_by_the_onset_alone_what_is_said_before_it_is_false_and_tells_nothing() -> None:
    early, late = Alarm(42, "critical", "policy"), Alarm(60, "warning", "reward")
    found = [score_run(FAILING, said(*alarms)) for alarms in ((early,), (late,), (early, late), ())]
    assert [one.told_after_onset for one in found] == [False, True, True, False]
    assert [one.alarm_before_onset for one in found] == [True, False, True, False]
    assert total_scores(found).told_after_onset == total_scores(found).alarm_before_onset == Share(2, 4)


def test_an_alarm_before_the_injection_is_false_and_tells_nothing() -> None:
    score = score_run(FAILING, said(Alarm(39, "critical", "reward")))
    assert (score.told, score.false_criticals, score.right_family) == (False, 1, None)


def test_an_alarm_of_another_family_is_neither_told_nor_false() -> None:
    score = score_run(FAILING, said(Alarm(60, "critical", "kl")))
    assert (score.told, score.critical, score.false_criticals, score.right_family) == (False, False, 0, False)


def test_the_family_is_that_of_the_first_critical_or_else_of_the_first_alarm() -> None:
    assert score_run(FAILING, said(Alarm(55, "warning", "kl"), Alarm(60, "critical", "reward"))).right_family is True
    assert score_run(FAILING, said(Alarm(55, "warning", "reward"), Alarm(60, "critical", "kl"))).right_family is False
    assert score_run(FAILING, said(Alarm(55, "warning", "kl"), Alarm(56, "warning", "reward"))).right_family is False


def test_a_judge_without_families_is_told_by_any_alarm_and_has_no_right_family() -> None:
    score = score_run(FAILING, said(Alarm(60, "warning")))
    assert (score.told, score.right_family) == (True, None)


@pytest.mark.parametrize("verdict", ["HEALTHY", "HARMLESS"])
def test_every_alarm_on_a_sound_run_is_false(verdict: str) -> None:
    score = score_run(Label("r", verdict, injected=40), said(Alarm(10, "warning", "kl"), Alarm(90, "critical", "reward")))
    assert (score.told, score.false_warnings, score.false_criticals) == (None, 1, 1)


def test_the_cause_may_be_the_first_or_among_the_first_two() -> None:
    causes = [frozenset({"reward_random"}), frozenset({"reward_flipped", "reward_changed"}), frozenset({"data_changed"})]
    score = score_run(FAILING, said(Alarm(60, "warning", "reward"), causes=causes))
    assert (score.right_cause, score.right_cause_of_two) == (False, True)
    assert score_run(FAILING, said(Alarm(60, "warning", "reward"), causes=causes[2:])).right_cause_of_two is False
    assert score_run(FAILING, said(Alarm(60, "warning", "kl"), causes=causes)).right_cause is None


def test_a_judge_that_names_no_cause_is_not_scored_on_it_and_one_that_finds_none_is_wrong() -> None:
    alarm = Alarm(60, "warning", "reward")
    assert score_run(FAILING, said(alarm)).right_cause is None and score_run(FAILING, said(alarm)).misleading is None
    assert score_run(FAILING, said(alarm, causes=[])).right_cause is False


def test_totals_count_each_share_over_the_runs_it_can_be_said_of() -> None:
    scores = [
        score_run(FAILING, said(Alarm(52, "critical", "reward"))),
        score_run(FAILING, said()),
        score_run(Label("d", "DEGRADED", "x", ("kl",), "c", 1, 5, 100), said(Alarm(9, "warning", "kl"))),
        score_run(Label("h", "HEALTHY"), said(Alarm(3, "warning", "kl"))),
        score_run(Label("h2", "HARMLESS", "x"), said()),
    ]
    totals = total_scores(scores)
    assert (totals.told, totals.critical, totals.degraded_told) == (Share(1, 2), Share(1, 2), Share(1, 1))
    assert total_scores([*scores, score_run(replace(FAILING, hidden=True), said())]).visible_told == Share(1, 2)
    assert (totals.false_any, totals.false_critical, totals.family) == (Share(1, 2), Share(0, 2), Share(2, 2))
    assert totals.delays == [2] and totals.saved == pytest.approx(0.24)
    assert totals.to_dict()["told"] == {"count": 1, "of": 2, "value": 0.5, "interval": [0.0945, 0.9055]}


def test_nothing_judged_gives_no_share_instead_of_zero() -> None:
    totals = total_scores([])
    assert str(totals.told) == "–" and "value" not in totals.to_dict()["told"] and totals.to_dict()["delay_median"] is None


@given(st.integers(0, 60), st.integers(1, 60))
def test_the_interval_is_the_one_of_wilson(count: int, of: int) -> None:
    """Against its definition: the ends are where |p - count/of| is 1.96 standard errors of p."""
    count = min(count, of)
    for end in Share(count, of).interval:
        if 1e-9 < end < 1.0 - 1e-9:
            assert abs(end - count / of) == pytest.approx(1.959964 * (end * (1 - end) / of) ** 0.5, rel=1e-6)


def test_nine_of_ten_delays_do_not_exceed_the_late_one() -> None:
    assert delay_quantiles(list(range(1, 11))) == (5.5, 9.0)
    assert delay_quantiles([4]) == (4.0, 4.0) and delay_quantiles([]) == (None, None)


@given(st.lists(st.tuples(st.integers(0, 99), st.sampled_from(["warning", "critical"]), st.sampled_from(["reward", "kl"]))))
def test_more_alarms_never_make_a_told_run_untold(alarms: list[tuple[int, str, str]]) -> None:
    some = score_run(FAILING, Judged([Alarm(*one) for one in alarms]))
    more = score_run(FAILING, Judged([Alarm(*one) for one in alarms] + [Alarm(70, "critical", "reward")]))
    assert more.told and more.critical and (not some.told or (more.delay or 0) <= (some.delay or 0))


def test_a_label_with_an_unknown_verdict_is_refused() -> None:
    with pytest.raises(UsageError, match="FAILING"):
        Label("r", "BROKEN")
