"""How parts become scores, and that docs/scores.md says what the code does."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.forensics import ComprehensivePPOForensics, ComprehensivePPOMetrics
from rldk.judge.config import ScanConfig
from rldk.judge.scores.alarms import alarm, alarmed
from rldk.judge.scores.formulas import PARTS, clip, combine, named, within

PAGE = Path(__file__).parents[2] / "docs" / "scores.md"
Healthy = Callable[..., list[dict[str, float]]]
parts = st.floats(0, 1) | st.just(math.nan)


@given(st.lists(parts, max_size=6))
def test_a_score_is_the_geometric_mean_of_the_parts_with_evidence(values: list[float]) -> None:
    known = [value for value in values if value == value]
    score = combine(values)
    if not known:
        assert math.isnan(score)
    else:
        assert score == pytest.approx(math.prod(known) ** (1 / len(known)))
        assert min(known) - 1e-12 <= score <= max(known) + 1e-12


@given(st.floats(allow_nan=True, allow_infinity=True), st.floats(min_value=0))
def test_within_is_one_up_to_the_limit_and_falls_beyond_it(value: float, limit: float) -> None:
    found = within(value, limit)
    if value != value:
        assert math.isnan(found)
    elif value <= limit:
        assert found == 1.0
    else:
        assert 0.0 <= found <= 1.0
        assert within(2 * value, limit) <= found


def test_clip() -> None:
    assert [clip(value) for value in (-1.0, 0.25, 3.0, math.inf, -math.inf)] == [0.0, 0.25, 1.0, 1.0, 0.0]
    assert math.isnan(clip(math.nan))


def found(kind: str, severity: str, family: str) -> Anomaly:
    return Anomaly(kind, severity, family, 19, 19, "", 0.0, 0.0, "", 19)


anomalies = st.builds(
    found,
    st.sampled_from(["kl_explosion", "dead_reward", "entropy_collapse", "nonfinite_metric"]),
    st.sampled_from(["warning", "critical"]),
    st.sampled_from(["kl_schedule", "reward", "policy", "run", "probe"]),
)


@given(st.lists(anomalies, max_size=5), anomalies)
def test_more_evidence_never_raises_a_score_and_a_critical_leaves_at_most_three_tenths(
    others: list[Anomaly], more: Anomaly
) -> None:
    for name in ("overall_health", "training_stability", "convergence_quality", "kl_health"):
        assert alarm([*others, more], name) <= alarm(others, name) <= 1.0
    assert alarm([*others, more], "training_stability") <= (0.3 if more.severity == "critical" else 0.7)


def test_an_alarm_presses_on_the_scores_of_its_own_family() -> None:
    kl, reward = found("kl_explosion", "critical", "kl_schedule"), found("dead_reward", "warning", "reward")
    pressed = {name: alarm([kl], name) for name in ("overall_health", "training_stability", "kl_health", "gradient_health")}
    assert pressed == {"overall_health": 0.3, "training_stability": 0.3, "kl_health": 0.3, "gradient_health": 1.0}
    assert (alarm([kl], "convergence_quality"), alarm([reward], "convergence_quality")) == (1.0, 0.7)
    assert alarm([found("nonfinite_metric", "critical", "run")], "convergence_quality") == 0.3
    assert alarm([found("low_training_stability", "warning", "scores")], "training_stability") == 1.0, "no score lowers itself"


def test_an_alarm_is_evidence_where_there_is_no_other() -> None:
    assert alarmed(math.nan, 0.3) == 0.3
    assert math.isnan(alarmed(math.nan, 1.0))
    assert alarmed(0.5, 0.3) == 0.15


def test_every_part_of_every_score_is_shown(healthy: Healthy) -> None:
    forensics = ComprehensivePPOForensics(kl_target=0.1)
    for step, row in enumerate(healthy(20)):
        metrics = forensics.update(step, **row)
    assert set(metrics.score_parts) == set(PARTS)
    assert {score: tuple(found) for score, found in metrics.score_parts.items()} == PARTS
    assert set(ComprehensivePPOMetrics().score_parts) == {"overall_health", "training_stability_overall", "convergence_quality"}
    assert all(math.isnan(part) for part in named("kl_health", ()).values())


def test_every_part_is_named_in_the_docs() -> None:
    text = PAGE.read_text()
    missing = [part for names in PARTS.values() for part in names if f"`{part}`" not in text]
    assert set(missing) <= {"kl", "gradients", "advantages", "entropy", "correlation"}, "described in words"


def test_overall_scores_are_made_of_their_parts(healthy: Healthy) -> None:
    forensics = ComprehensivePPOForensics(kl_target=0.1)
    for step, row in enumerate(healthy(150)):
        metrics = forensics.update(step, **row)
        shown = metrics.score_parts
        health = dict(shown["overall_health"])
        alarms = health.pop("alarms")
        if metrics.overall_health_score == metrics.overall_health_score:
            trackers = combine(health.values())
            assert metrics.overall_health_score == pytest.approx((trackers if trackers == trackers else 1.0) * alarms)
        for name, score in (
            ("training_stability_overall", metrics.training_stability_score),
            ("convergence_quality", metrics.convergence_quality_score),
        ):
            made_of = dict(shown[name])
            alarms = made_of.pop("alarms")
            assert score == pytest.approx(combine(made_of.values()) * alarms, nan_ok=True)


def test_an_anomaly_that_stands_lowers_the_health() -> None:
    forensics = ComprehensivePPOForensics()
    for step in range(20):
        forensics.update(step, kl=0.1)
    before = forensics.current().overall_health_score
    anomaly = Anomaly("test", "critical", "test", 19, 19, "", 0.0, 0.0, "", 19)
    forensics.engine._open["test"] = [anomaly]
    assert forensics.current().overall_health_score == pytest.approx(0.3 * before)
    assert forensics.current().score_parts["overall_health"]["alarms"] == 0.3


def test_reward_parts_by_hand() -> None:
    forensics = ComprehensivePPOForensics()
    rewards = [0.0, 0.1] * 10 + [1.0, 1.1] * 10 + [0.5, 0.6] * 10
    for step, reward in enumerate(rewards):
        metrics = forensics.update(step, reward_mean=reward)
    found = metrics.score_parts["convergence_quality"]
    noise = abs(rewards[1] - rewards[0])
    for before, after in pairwise(rewards[1:]):
        noise += 0.1 * (abs(after - before) - noise)
    start, level = 0.0, sorted(rewards[-5:])[2]
    levels = [sorted(rewards[place : place + 5])[2] for place in range(len(rewards) - 4)]
    best = max(map(min, levels, levels[1:], levels[2:]))  # held for three rows
    assert found["reward_held"] == pytest.approx(1 - (best - level - 2 * noise) / (best - start))
    assert found["reward_gained"] == pytest.approx(min(1.0, 0.5 + (level - start) / (6 * noise)))


def test_the_worked_example_of_the_page_is_what_the_code_gives() -> None:
    text = PAGE.read_text()
    example = text[text.index("## A worked example") :]
    (code,) = re.findall(r"```python\n(.*?)```", example, flags=re.DOTALL)
    names: dict[str, ComprehensivePPOMetrics] = {}
    exec(code, names)
    metrics = names["metrics"]
    stated = {name: float(number) for name, number in re.findall(r"^> `(\w+)` = .*?([0-9.]+)$", example, flags=re.MULTILINE)}
    kl, gradients = metrics.kl_schedule_metrics, metrics.gradient_norms_metrics
    assert kl is not None
    assert gradients is not None
    assert stated == {
        "kl_health": round(kl.kl_health_score, 3),
        "schedule_health": round(kl.schedule_health_score, 3),
        "gradient_health": round(gradients.gradient_health_score, 3),
        "overall_health": round(metrics.overall_health_score, 3),
        "convergence_quality": round(metrics.convergence_quality_score, 3),
    }
    assert metrics.score_parts["kl_health"] == pytest.approx({"level": 0.8, "steadiness": 1.0, "trend": 1.0})
    assert metrics.score_parts["schedule_health"]["range"] == pytest.approx(5.5 / 12)


def test_a_solved_task_needs_no_gradient() -> None:
    """All answers are right, so nothing is left to learn: that is not ill health."""
    judge = ScanConfig().judge()
    for step in range(120):
        right = min(0.2 + step / 60.0, 1.0)
        metrics = {"reward_mean": right, "reward_std": (right * (1.0 - right)) ** 0.5, "grad_norm": 0.5 if right < 1.0 else 1e-4}
        judge.take(Event(step, {**metrics, "kl_mean": 0.02 + 1e-4 * (step % 3), "entropy_mean": 0.5 + 0.01 * (step % 2)}))
    scores = judge.result().scores
    assert scores["overall_health"] > 0.9 and "gradient_health" not in scores
