"""Anomalies that belong together, what moved first, the probable cause, and what to do with the run's own numbers."""

from __future__ import annotations

from typing import Any

import pytest

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.core.run_config import RunConfig
from rldk.detectors.run.user_limit import UserLimit
from rldk.detectors.table import BY_TYPE
from rldk.judge.engine import Engine
from rldk.judge.incidents.advice import Setup
from rldk.judge.incidents.causes import CAUSES
from rldk.judge.incidents.incident import group_incidents
from rldk.testing.streams import faulty


def anomaly(kind: str, index: int, severity: str = "warning", since: int | None = None, **more: Any) -> Anomaly:
    """An anomaly of a type, or of one of its clauses (`type.clause`)."""
    kind, _, more["clause"] = kind.partition(".")
    given: dict[str, Any] = {"since": index - 2 if since is None else since, "last_good_step": 10 * (index - 6), **more}
    return Anomaly(kind, severity, "tracker", 10 * index, index, f"{kind} at {index}.", 1.0, 0.5, f"Do about {kind}.", **given)


def causes(*kinds: str, events: int = 300) -> list[str]:
    """The cause and its rivals where these are raised, one row after the other."""
    (incident,) = group_incidents([anomaly(kind, 100 + number) for number, kind in enumerate(kinds)], events)
    return [incident.cause, *incident.rivals]


def test_no_anomaly_no_incident() -> None:
    assert group_incidents([], 100) == []


def test_near_in_time_is_one_and_far_is_two() -> None:
    near = group_incidents([anomaly("kl_explosion", 100), anomaly("policy_collapse", 132)], 200)
    assert [incident.anomalies for incident in near] == [[0, 1]]
    far = group_incidents([anomaly("kl_explosion", 100, cleared_index=110), anomaly("policy_collapse", 133)], 200)
    assert [incident.anomalies for incident in far] == [[0], [1]]


def test_what_is_near_grows_with_the_run() -> None:
    pair = [anomaly("kl_explosion", 100, cleared_index=110), anomaly("policy_collapse", 160)]
    assert len(group_incidents(pair, 300)) == 2
    assert len(group_incidents(pair, 1000)) == 1


def test_a_chain_of_anomalies_is_one() -> None:
    chain = [anomaly("kl_spike", 100 + 25 * number) for number in range(10)]
    assert [incident.anomalies for incident in group_incidents(chain, 300)] == [list(range(10))]


def test_what_began_near_belongs_together_though_it_was_raised_late() -> None:
    late = [anomaly("kl_explosion", 100), anomaly("policy_collapse", 200, since=110)]
    assert len(group_incidents(late, 300)) == 1


def test_the_order_of_the_list_does_not_matter() -> None:
    pair = [anomaly("policy_collapse", 110), anomaly("kl_explosion", 100)]
    (incident,) = group_incidents(pair, 300)
    assert incident.anomalies == [1, 0]
    assert (incident.step, incident.index) == (1000, 100)


def test_the_first_mover_is_the_one_whose_condition_began_first() -> None:
    members = [anomaly("kl_explosion", 100, since=98), anomaly("policy_collapse", 104, since=90)]
    (incident,) = group_incidents(members, 300)
    assert incident.first == "policy_collapse"


def test_the_worst_severity_is_the_incidents() -> None:
    members = [anomaly("kl_explosion", 100), anomaly("kl_explosion", 110, "critical")]
    (incident,) = group_incidents(members, 300)
    assert incident.severity == "critical"
    assert (incident.step, incident.index) == (1000, 100), "it began with the warning"


def test_evidence_tells_each_type_once_and_its_worst() -> None:
    members = [
        anomaly("kl_explosion", 100),
        anomaly("policy_collapse", 105),
        anomaly("kl_explosion", 110, "critical"),
        anomaly("kl_explosion", 112),
    ]
    (incident,) = group_incidents(members, 300)
    assert incident.evidence == ["step 1000, critical at 1100: kl_explosion at 110.", "step 1050: policy_collapse at 105."]


def test_what_follows_while_a_critical_stands_is_the_same_incident_and_does_not_change_its_cause() -> None:
    members = [
        anomaly("policy_collapse", 100, "critical"),
        anomaly("dead_reward", 300, "critical"),
        anomaly("plateau", 400),
        anomaly("value_divergence", 600, "critical"),
    ]
    (incident,) = group_incidents(members, 1000)
    assert (incident.cause, incident.anomalies) == ("policy_degenerated", [0, 1, 2, 3])
    assert incident.last_good_step == members[0].last_good_step, "no step after the collapse is good"
    assert [sentence.split(":")[0] for sentence in incident.evidence] == ["step 1000", "step 3000", "step 4000", "step 6000"]


def test_what_comes_after_a_critical_has_cleared_is_another_incident() -> None:
    members = [anomaly("policy_collapse", 100, "critical", cleared_index=150), anomaly("length_bias", 400)]
    assert [incident.cause for incident in group_incidents(members, 1000)] == ["policy_degenerated", "reward_pays_for_length"]


@pytest.mark.parametrize("kind", ["plateau", "vanishing_gradient_anomaly", "dead_reward"])
def test_what_a_broken_run_is_left_with_is_no_incident_of_its_own(kind: str) -> None:
    members = [anomaly("learning_rate_too_high", 100, "critical", cleared_index=150), anomaly(kind, 700)]
    (incident,) = group_incidents(members, 1000)
    assert incident.cause == "learning_rate_too_high", "and not: raise the learning rate"
    members[0].severity = "warning"
    assert len(group_incidents(members, 1000)) == 2


@pytest.mark.parametrize("kind", ["throughput_drop", "memory_pressure", "step_regression", "nonfinite_metric"])
def test_what_no_collapse_brings_about_is_told_by_itself(kind: str) -> None:
    members = [anomaly("policy_collapse", 100, "critical"), anomaly(kind, 400)]
    assert [incident.anomalies for incident in group_incidents(members, 1000)] == [[0], [1]]
    members = [anomaly(kind, 100, "critical"), anomaly("length_bias", 400)]
    assert [incident.anomalies for incident in group_incidents(members, 1000)] == [[0], [1]]


def test_a_warning_that_stands_takes_warnings_of_its_cause_and_no_critical() -> None:
    standing = anomaly("target_range_anomaly.above", 50)
    (incident,) = group_incidents([standing, anomaly("kl_trend_anomaly", 400)], 1000)
    assert incident.anomalies == [0, 1]
    assert len(group_incidents([standing, anomaly("kl_explosion", 400, "critical")], 1000)) == 2
    assert len(group_incidents([standing, anomaly("length_bias", 400)], 1000)) == 2
    (incident,) = group_incidents([standing, anomaly("target_range_anomaly.above", 400, "critical")], 1000)
    assert incident.severity == "critical", "the same defect, grown"


def test_what_is_near_to_what_follows_follows_too() -> None:
    members = [
        anomaly("policy_collapse", 100, "critical", cleared_index=310),
        anomaly("plateau", 300),
        anomaly("length_bias", 350),
    ]
    (incident,) = group_incidents(members, 1000)
    assert (incident.cause, incident.anomalies) == ("policy_degenerated", [0, 1, 2])


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["nonfinite_metric", "loss_explosion", "policy_collapse"], "numerical_failure"),
        (["learning_rate_too_high", "clip_saturation", "kl_explosion"], "learning_rate_too_high"),
        (["exploding_gradient_anomaly", "loss_explosion", "policy_collapse"], "learning_rate_too_high"),
        (["kl_explosion"], "kl_penalty_too_weak"),
        (["kl_trend_anomaly", "kl_explosion", "target_range_anomaly.above"], "kl_penalty_too_weak"),
        (["reward_hacking", "kl_explosion"], "reward_exploited"),
        (["kl_explosion", "kl_trend_anomaly", "target_range_anomaly.above", "reward_hacking"], "kl_penalty_too_weak"),
        (["reward_saturation"], "nothing_left_to_learn"),
        (["reward_saturation", "reward_hacking"], "reward_exploited"),
        (["kl_spike", "kl_explosion"], "one_update_too_far"),
        (["kl_explosion", "kl_spike", "kl_trend_anomaly"], "kl_penalty_too_weak"),
        (["policy_collapse", "kl_trend_anomaly", "target_range_anomaly.above"], "policy_degenerated"),
        (["policy_collapse", "dead_reward"], "policy_degenerated"),
        (["policy_collapse", "length_runaway"], "policy_degenerated"),
        (["length_runaway", "policy_collapse", "plateau"], "policy_degenerated"),
        (["policy_collapse", "entropy_explosion", "length_runaway"], "policy_degenerated"),
        (["policy_collapse", "plateau"], "policy_degenerated"),
        (["plateau.drifts_far"], "reward_random"),
        (["entropy_explosion", "policy_collapse", "clip_saturation.saturated", "plateau.drifts_far"], "policy_degenerated"),
        (["learning_rate_too_high", "kl_explosion", "value_divergence", "reward_hacking"], "learning_rate_too_high"),
        (["value_unexplained"], "values_uninformative"),
        (["coef_adaptation_anomaly", "target_range_anomaly.above", "kl_trend_anomaly"], "kl_controller_unstable"),
        (["exploding_gradient_anomaly", "gradient_imbalance_anomaly"], "gradients_out_of_balance"),
        (["length_bias", "length_runaway"], "reward_pays_for_length"),
        (["eos_starvation.stopped", "length_bias"], "reward_pays_for_length"),
        (["length_runaway", "eos_starvation.never_yet"], "responses_cannot_end"),
        (["eos_starvation.never"], "responses_cannot_end"),
        (["length_collapse.cut_short", "eos_starvation.never"], "responses_cut_short"),
        (["dead_reward.no_spread", "eos_starvation.never_yet"], "reward_constant"),
        (["dead_reward"], "reward_constant"),
        (["dead_reward.dead_groups"], "reward_ignores_response"),
        (["kl_penalty_off.negative", "kl_explosion.beyond_any"], "kl_penalty_negative"),
        (["kl_penalty_off.lost", "kl_explosion.far"], "kl_penalty_too_weak"),
        (["temperature_wrong.absurd", "entropy_collapse.gone"], "temperature_wrong"),
        (["learning_rate_too_low.zero", "plateau.still"], "learning_rate_too_low"),
        (["policy_frozen.no_gradient", "plateau.still"], "policy_frozen"),
        (["reference_wrong.is_the_policy"], "reference_wrong"),
        (["weights_replaced.fell_back"], "weights_replaced"),
        (["eos_starvation.stopped_at_once", "reward_hacking"], "responses_cannot_end"),
        (["plateau.wanders"], "reward_random"),
        (["sampling_restricted.greedy", "dead_reward.dead_groups"], "sampling_restricted"),
        (["policy_frozen.undersized", "plateau.hardly_moves"], "updates_too_small"),
        (["response_collapse.no_variety", "dead_reward.dead_groups"], "responses_not_sampled"),
        (["batch_overused.overused", "kl_explosion", "policy_collapse"], "too_many_epochs"),
        (["reward_changed.flipped", "policy_collapse"], "reward_flipped"),
        (["nonfinite_metric.reward"], "reward_nonfinite"),
        (["too_few_prompts.few", "plateau"], "too_few_prompts"),
        (["value_divergence", "value_unexplained", "exploding_gradient_anomaly"], "value_diverged"),
        (["plateau"], "nothing_learnt"),
        (["policy_collapse"], "policy_degenerated"),
        (["entropy_collapse", "policy_collapse"], "policy_degenerated"),
        (["entropy_collapse.gone", "reward_hacking.entropy_alone"], "policy_degenerated"),
        (["entropy_collapse.gone", "reward_hacking.several_channels"], "reward_exploited"),
        (["train_inference_mismatch", "policy_collapse"], "sampler_out_of_step"),
        (["negative_kl"], "kl_estimate_wrong"),
        (["controller_oscillation_anomaly", "controller_overshoot_anomaly"], "kl_controller_unstable"),
        (["preference_degenerate", "vanishing_gradient_anomaly"], "preference_overfit"),
        (["preference_unlearnt.held_out_worse"], "preference_overfit"),
        (["preference_unlearnt.no_margin"], "labels_noisy"),
        (["throughput_drop"], "machine_trouble"),
        (["memory_pressure", "throughput_drop"], "machine_trouble"),
        (["step_regression"], "log_mixed_up"),
    ],
)
def test_the_probable_cause(kinds: list[str], expected: str) -> None:
    assert causes(*kinds)[0] == expected


def test_rivals_come_in_the_order_of_their_weight() -> None:
    assert causes("reward_hacking", "kl_explosion") == ["reward_exploited", "kl_penalty_too_weak"]
    assert causes("kl_spike", "kl_explosion")[:2] == ["one_update_too_far", "kl_penalty_too_weak"]
    assert len(causes("policy_collapse", "kl_explosion", "dead_reward", "value_divergence", "plateau", "length_bias")) == 4


def test_a_cause_needs_its_own_sign() -> None:
    assert "numerical_failure" not in causes("loss_explosion", "exploding_gradient_anomaly")
    assert "learning_rate_too_high" not in causes("kl_spike", "length_runaway")


def test_what_no_cause_explains_is_named_after_itself() -> None:
    (incident,) = group_incidents([anomaly("user_limit_exceeded", 100)], 300)
    assert (incident.cause, incident.title) == ("user_limit_exceeded", "limit crossed")
    assert incident.rivals == []
    assert incident.advice == "Do about user_limit_exceeded."


def test_the_advice_has_the_runs_numbers_of_that_moment() -> None:
    knobs = {"lr": 3e-5, "kl_coef": 0.05, "kl_mean": 0.75}
    later = {"lr": 9e-5, "kl_coef": 0.9, "kl_mean": 9.0}
    members = [anomaly("kl_explosion", 100, knobs=knobs), anomaly("kl_explosion", 120, "critical", knobs=later)]
    (incident,) = group_incidents(members, 300)
    assert incident.advice == (
        "Raise the KL coefficient (it was 0.05) three- to tenfold, or lower the learning rate (it was 3e-05)."
    )


def test_of_a_scheduled_learning_rate_the_setting_is_named_before_its_value_at_that_step() -> None:
    found = [anomaly("learning_rate_too_high", 100, knobs={"lr": 5e-7, "lr_highest": 3e-6})]

    def advice(**settings: float) -> str:
        (incident,) = group_incidents(found, 300, setup=Setup(config=RunConfig.of(settings)))
        return incident.advice

    assert "the learning rate (it was 3e-06 at most, 5e-07 at that step)" in advice()
    assert "the learning rate (`learning_rate`, set to 4e-06, 5e-07 at that step)" in advice(learning_rate=4e-6)
    assert "the learning rate (`learning_rate`, it was 5e-07)" in advice(learning_rate=5e-7)


def test_the_highest_learning_rate_so_far_is_kept_where_the_rate_has_fallen() -> None:
    rates = [1e-6, 2e-6, *(3e-6 - n * 1e-8 for n in range(60))]
    rows = [Event(step, metrics={"kl_mean": 0.1 if step < 40 else 400.0, "lr": rate}) for step, rate in enumerate(rates)]
    engine = Engine([BY_TYPE["kl_explosion"]()])
    first = next(found for row in rows for found in engine.observe(row))
    assert first.knobs["lr"] == rates[first.index] and first.knobs["lr_highest"] == pytest.approx(3e-6, rel=0.01)


def test_where_the_entropy_fell_first_the_advice_is_to_raise_it() -> None:
    (incident,) = group_incidents([anomaly("entropy_collapse", 100), anomaly("policy_collapse", 110)], 300)
    assert "raise the entropy bonus, the sampling temperature or the KL coefficient" in incident.advice
    (incident,) = group_incidents([anomaly("policy_collapse", 100), anomaly("entropy_collapse", 110)], 300)
    assert incident.cause == "policy_degenerated" and "entropy bonus" not in incident.advice


def test_a_knob_that_was_not_logged_has_no_value() -> None:
    (incident,) = group_incidents([anomaly("kl_explosion", 100)], 300)
    assert incident.advice == "Raise the KL coefficient three- to tenfold, or lower the learning rate."


def test_the_policys_own_learning_rate_goes_first() -> None:
    (incident,) = group_incidents([anomaly("learning_rate_too_high", 100, knobs={"lr": 1e-3, "policy_lr": 2e-6})], 300)
    assert "(it was 2e-06)" in incident.advice


def test_the_critics_own_learning_rate_is_named_where_there_is_one() -> None:
    (incident,) = group_incidents([anomaly("value_divergence", 100, knobs={"lr": 1e-3, "value_lr": 2e-4})], 300)
    assert "critic's learning rate (it was 0.0002)" in incident.advice


def test_a_plateau_has_no_last_good_step_and_takes_none_away() -> None:
    assert group_incidents([anomaly("plateau", 600)], 1000)[0].last_good_step is None
    members = [anomaly("policy_collapse", 590, last_good_step=5700), anomaly("plateau", 600, last_good_step=5900)]
    assert group_incidents(members, 1000)[0].last_good_step == 5700
    members = [anomaly("plateau", 600, last_good_step=5900), anomaly("policy_collapse", 640, last_good_step=6200)]
    assert group_incidents(members, 1000)[0].last_good_step is None, "6200 is after the incident's own beginning"


def test_where_no_step_was_good_nobody_is_sent_back_to_one() -> None:
    (incident,) = group_incidents([anomaly("learning_rate_too_high", 3, last_good_step=None, knobs={"lr": 1e-3})], 300)
    assert incident.advice.startswith("Start again and lower the learning rate (it was 0.001)")
    (incident,) = group_incidents([anomaly("learning_rate_too_high", 100)], 300)
    assert incident.advice.startswith("Go back to the last checkpoint at or before step 940 and lower the learning rate")


def test_what_has_been_so_for_all_rows_has_no_last_good_step() -> None:
    assert group_incidents([anomaly("dead_reward", 39, evidence={"rows": 40.0})], 300)[0].last_good_step is None
    assert group_incidents([anomaly("dead_reward", 100, evidence={"rows": 40.0})], 300)[0].last_good_step is not None


def test_the_last_good_step_is_the_earliest_of_all() -> None:
    members = [anomaly("kl_explosion", 100, last_good_step=940), anomaly("policy_collapse", 110, last_good_step=930)]
    assert group_incidents(members, 300)[0].last_good_step == 930
    members.append(anomaly("dead_reward", 112, last_good_step=None))
    assert group_incidents(members, 300)[0].last_good_step is None


KNOBS = ("lr", "value_lr", "kl_coef", "epochs", "clip", "grad_clip", "temperature", "length", "batch", "back")


def test_every_sign_of_a_cause_is_a_type_or_a_clause_that_there_is() -> None:
    known = {*BY_TYPE, UserLimit.type, "nonfinite_gradient"}
    known |= {f"{kind}.{clause}" for kind, detector in BY_TYPE.items() for clause in detector.clauses}
    for cause in CAUSES:
        assert {*cause.signs, *cause.needs} <= known, cause.name
        assert cause.title and cause.advice.format(**dict.fromkeys(KNOBS, "it"))
    assert len({cause.name for cause in CAUSES}) == len(CAUSES)


def test_an_incident_of_one_anomaly_of_any_type() -> None:
    for kind in sorted(set(BY_TYPE) - {"advantage_skewness_anomaly"}):
        (incident,) = group_incidents([anomaly(kind, 100)], 300)
        assert incident.cause and incident.title and incident.advice and incident.first == kind, kind


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("kl_explosion", {"kl_penalty_too_weak", "learning_rate_too_high"}),
        ("dead_reward", {"reward_constant"}),
        ("nonfinite_metric", {"numerical_failure"}),
        ("preference_degenerate", {"preference_overfit"}),
        ("throughput_drop", {"machine_trouble"}),
        ("learning_rate_too_high", {"learning_rate_too_high"}),
    ],
)
def test_simulated_faults_are_put_down_to_their_cause(fault: str, expected: set[str]) -> None:
    engine = Engine()
    onset = 1 if fault in ("dead_reward", "learning_rate_too_high") else 200
    for event in faulty(fault, seed=1, steps=500, onset=onset):
        engine.observe(event)
    incidents = group_incidents(engine.anomalies, engine.events)
    worst = min(incidents, key=lambda incident: (incident.severity != "critical", incident.index))
    assert worst.cause in expected


def test_an_incident_as_others_read_it() -> None:
    (incident,) = group_incidents([anomaly("plateau", 100)], 300)
    assert set(incident.to_dict()) >= {
        "cause", "severity", "step", "index", "anomalies", "evidence", "advice", "last_good_step", "first", "rivals", "title",
    }  # fmt: skip


LANGUAGE = ("response", "prompt", "sample", "token", "chat template", "parse")


@pytest.mark.parametrize("setup", [Setup("sb3"), Setup("cleanrl"), Setup(keys=frozenset({"rollout/ep_rew_mean"}))])
@pytest.mark.parametrize(
    "kind",
    ["dead_reward.constant", "plateau.drifts", "reward_changed.worse", "policy_collapse", "reward_hacking", "entropy_collapse"],
)
def test_control_tasks_get_no_advice_for_language_models(setup: Setup, kind: str) -> None:
    (incident,) = group_incidents([anomaly(kind, 100, "critical")], 300, setup=setup)
    told = f"{incident.title} {incident.advice}".lower()
    assert not [word for word in LANGUAGE if word in told], told


def test_what_a_collapse_leads_to_does_not_change_its_cause() -> None:
    """The groups without a spread come long after the incident was critical."""
    members = [
        anomaly("learning_rate_too_high.high_with_damage", 100, "critical"),
        anomaly("kl_explosion.beyond_any", 125, "critical"),
        anomaly("dead_reward.dead_groups", 150, "critical"),
        anomaly("dead_reward.prompts_decide", 170, "critical"),
        anomaly("sparse_reward.stays", 190, "critical"),
    ]
    (early,) = group_incidents(members[:2], 300)
    (late,) = group_incidents(members, 300)
    assert late.cause == early.cause == "learning_rate_too_high"
    assert late.rivals == early.rivals and len(late.evidence) > len(early.evidence)


def test_a_kl_below_its_target_asks_for_less_penalty_and_one_above_for_more() -> None:
    assert causes("target_range_anomaly.below") == ["kl_penalty_too_strong"]
    assert causes("target_range_anomaly.above")[0] == "kl_penalty_too_weak"


def test_a_loss_that_never_had_a_value_is_no_numerical_failure() -> None:
    assert causes("nonfinite_metric.never") == ["policy_frozen"]


def test_advice_names_the_flag_of_a_script_and_the_field_of_a_config() -> None:
    script = Setup("trainer", RunConfig.of({"arguments": "trainer/train_ppo.py", "learning_rate": 1e-3}))
    config = Setup("trl_grpo", RunConfig.of({"arguments": "GRPOConfig", "learning_rate": 1e-3}))
    assert (script.name_of("lr"), config.name_of("lr")) == ("--learning_rate", "GRPOConfig.learning_rate")
