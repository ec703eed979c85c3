"""An incident as every surface tells it."""

from __future__ import annotations

from rldk.core.anomaly import Anomaly
from rldk.judge.incidents.incident import Incident
from rldk.present.incidents import (
    evidence_keys,
    in_brief,
    last_good,
    marks_of,
    may_also_be,
    panels_showing,
    recovered,
    story,
    subject,
    worst_incident,
)  # fmt: skip
from rldk.present.verdicts import VERDICTS, at_worst, ranking, verdict_words


def incident(severity: str = "critical", index: int = 5, **given: object) -> Incident:
    values = {
        "cause": "reward_hacking", "title": "the policy games the reward", "severity": severity, "step": 10 * index,
        "index": index, "anomalies": [], "first": "kl_explosion", "evidence": [], "rivals": [], "advice": "Stop.",
        "last_good_step": None,
    }  # fmt: skip
    return Incident(**{**values, **given})  # type: ignore[arg-type]


def anomaly(kind: str, severity: str, index: int, since: int) -> Anomaly:
    return Anomaly(kind, severity, "policy", 10 * index, index, "seen", 1.0, 0.5, "act", since)


def test_a_story_has_the_first_mover_first_and_of_each_type_the_worst() -> None:
    found = [
        anomaly("reward_hacking", "warning", 6, 2), anomaly("kl_explosion", "warning", 5, 4),
        anomaly("kl_explosion", "critical", 9, 8),
    ]  # fmt: skip
    told = story(incident(anomalies=[0, 1, 2]), found, lambda index: 10 * index)
    assert [(one.anomaly.type, one.anomaly.severity, one.began, one.first) for one in told] == [
        ("kl_explosion", "critical", 40, True), ("reward_hacking", "warning", 20, False),
    ]  # fmt: skip


def test_words_for_recovery_last_good_step_and_rivals() -> None:
    assert recovered(incident()) == "" and recovered(incident(recovered_step=1200)) == ", recovered at step 1200"
    assert last_good(incident()) == "none in this log" and last_good(incident(last_good_step=4)) == "4"
    assert may_also_be(incident(rivals=["learning_rate_too_high", "of_my_own"])) == "the learning rate is too high; of my own"


def test_an_incident_in_brief_has_the_first_sentence_of_the_advice() -> None:
    advice = "Lower `lr` to 0.1 (e.g. 0.05), as before. Then look again."
    assert in_brief(incident(advice=advice, last_good_step=40)) == (
        "Since step 50: the policy games the reward; last good step: 40. What to do: Lower `lr` to 0.1 (e.g. 0.05), as before."
    )
    assert ", recovered at step 90; last good step: none in this log. " in in_brief(incident(recovered_step=90))


def test_marks_are_numbered_and_the_last_good_step_before_the_worst_is_among_them() -> None:
    marks = marks_of([incident("warning", 1), incident("critical", 5, last_good_step=40)], 3)
    assert [(mark.label, mark.x, mark.severity) for mark in marks] == [
        ("3", 10, "warning"), ("4", 50, "critical"), ("✓", 40, "good"),
    ]  # fmt: skip
    assert marks_of([]) == []


def test_the_worst_incident_is_the_first_critical_and_else_the_first() -> None:
    assert worst_incident([incident("warning", 1), incident("critical", 5), incident("critical", 7)]).index == 5  # type: ignore[union-attr]
    assert worst_incident([incident("warning", 3), incident("warning", 4)]).index == 3  # type: ignore[union-attr]
    assert worst_incident([]) is None


def test_an_incident_that_is_over_comes_after_one_of_the_same_severity_that_stands() -> None:
    over, stands = incident("critical", 5, recovered_step=90), incident("critical", 20)
    assert worst_incident([over, stands]) is stands
    assert worst_incident([over, incident("warning", 2)]) is over, "what would have stopped the run is read before a warning"


def test_panels_of_several_anomalies_have_the_best_of_each_first() -> None:
    assert panels_showing(["kl_explosion", "clip_saturation", "of_my_own"])[:2] == ["kl", "clip"]


def test_the_panels_of_an_incident_begin_with_what_moved_first_and_are_at_least_two() -> None:
    available = ["reward", "kl", "clip", "kl_update", "entropy", "losses"]
    assert evidence_keys(["clip_saturation", "kl_explosion"], available) == ["clip", "kl", "kl_update"]
    assert evidence_keys(["clip_saturation", "kl_explosion"], available, 2) == ["clip", "kl"]
    assert evidence_keys(["negative_kl"], available) == ["kl", "reward"]
    assert evidence_keys(["of_my_own"], available) == ["reward", "kl"] and evidence_keys([], ["lr"]) == []


def test_an_incident_is_about_the_family_of_what_moved_first() -> None:
    assert subject(incident()) == "KL" and subject(incident(first="loss_explosion")) == "the run itself"
    assert subject(incident(first="limit_of_mine")) == "limit of mine"


def test_runs_are_ranked_by_verdict_and_then_by_anomalies() -> None:
    runs = [("healthy", 0), ("critical", 1), ("no_data", 0), ("critical", 4), ("warning", 9)]
    ranked = sorted(runs, key=lambda run: ranking(*run))
    assert ranked == [("critical", 4), ("critical", 1), ("warning", 9), ("no_data", 0), ("healthy", 0)]
    assert [verdict_words(verdict) for verdict in VERDICTS] == ["critical", "warning", "no data", "healthy"]


def test_a_score_that_was_lower_says_so() -> None:
    assert at_worst(0.8, 0.31) == "at worst 0.31" and at_worst(0.8, 0.799) == "" and at_worst(0.8, None) == ""
