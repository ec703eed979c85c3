"""The forensics object: the contract's example, its dictionaries, its switches, and what it refuses."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.forensics import ComprehensivePPOForensics, ComprehensivePPOMetrics

Healthy = Callable[..., list[dict[str, float]]]
Check = Callable[[Any], None]


def test_the_contracts_example(tmp_path: Path, healthy: Healthy) -> None:
    events = [{"step": step, **row} for step, row in enumerate(healthy(30))]
    path = tmp_path / "analysis.json"
    forensics = ComprehensivePPOForensics(
        kl_target=0.1, kl_target_tolerance=0.05, window_size=100,
        enable_kl_schedule_tracking=True, enable_gradient_norms_analysis=True, enable_advantage_statistics=True,
        enable_length_bias_detection=True, length_bias_threshold=0.35)  # fmt: skip
    metrics = forensics.update(step=100, kl=0.12, kl_coef=1.1, entropy=1.8, reward_mean=0.6, reward_std=0.3,
                               policy_grad_norm=0.7, value_grad_norm=0.4, advantage_mean=0.05, advantage_std=1.2)  # fmt: skip
    assert isinstance(metrics, ComprehensivePPOMetrics)
    assert (metrics.step, metrics.kl, metrics.kl_coef, metrics.entropy) == (100, 0.12, 1.1, 1.8)
    assert isinstance(forensics.get_comprehensive_analysis(), dict)
    assert isinstance(forensics.get_health_summary(), dict)
    assert isinstance(forensics.get_length_bias_analysis(), dict)
    assert forensics.get_anomalies() == []
    scanned = forensics.scan_ppo_events_comprehensive(iter(events))
    assert scanned["comprehensive_analysis"]["total_steps"] == 30
    forensics.save_analysis(path)
    assert json.loads(path.read_text()) == forensics.get_comprehensive_analysis()


def test_the_constructor_shows_the_defaults_of_the_contract() -> None:
    defaults = {name: parameter.default for name, parameter in inspect.signature(ComprehensivePPOForensics).parameters.items()}
    assert ComprehensivePPOForensics().kl_target == 0.1
    assert defaults == {
        "kl_target": 0.1,
        "kl_target_tolerance": 0.05,
        "window_size": 100,
        "enable_kl_schedule_tracking": True,
        "enable_gradient_norms_analysis": True,
        "enable_advantage_statistics": True,
        "enable_length_bias_detection": True,
        "length_bias_threshold": 0.35,
        "detectors": None,
    }


def test_the_dictionaries_have_the_contracts_keys_and_are_strict_json(healthy: Healthy, assert_strict: Check) -> None:
    forensics = ComprehensivePPOForensics()
    for step, row in enumerate(healthy(40)):
        metrics = forensics.update(step, **row, response_data=[{"length": 10 + step, "reward": 0.1 * step}])
    forensics.update(40, kl=math.nan, reward_mean=math.inf)
    analysis = forensics.get_comprehensive_analysis()
    assert {
        "version", "total_steps", "overall_health_score", "training_stability_score", "convergence_quality_score",
        "anomalies", "trackers",
    } <= set(analysis)  # fmt: skip
    assert set(analysis["trackers"]) == {"kl_schedule", "gradient_norms", "advantage_statistics", "length_bias"}
    assert analysis["total_steps"] == 41
    summary = forensics.get_health_summary()
    assert {"status", "overall_health_score", "training_stability_score", "convergence_quality_score"} <= set(summary)
    assert {"current_kl", "current_kl_coef", "current_reward_mean", "current_entropy"} <= set(summary)
    assert {"critical_anomalies", "warning_anomalies", "total_anomalies"} <= set(summary)
    for found in (analysis, summary, forensics.get_length_bias_analysis(), forensics.get_anomalies(), metrics.to_dict()):
        assert_strict(found)
    keys = {"type", "severity", "tracker", "step", "index", "message", "value", "threshold", "advice"}
    assert forensics.get_anomalies()
    assert all(keys <= set(anomaly) for anomaly in forensics.get_anomalies())


def test_later_updates_do_not_change_a_snapshot(healthy: Healthy) -> None:
    forensics = ComprehensivePPOForensics()
    kept = []
    for step, row in enumerate(healthy(60)):
        metrics = forensics.update(step, **row, response_data=[{"length": step, "reward": step % 7}])
        kept.append((metrics, repr(metrics), metrics.to_dict()))
    for metrics, shown, listed in kept:
        assert repr(metrics) == shown
        assert metrics.to_dict() == listed
    metrics.metrics["kl_mean"] = 5.0
    assert metrics.metrics["kl_mean"] == metrics.kl != 5.0
    assert repr(pickle.loads(pickle.dumps(metrics))) == repr(metrics)
    assert dataclasses.replace(metrics, kl=1.0).kl == 1.0
    assert type(metrics) is ComprehensivePPOMetrics


def test_a_healthy_run_scores_high_and_a_sick_one_low(healthy: Healthy) -> None:
    well, ill = ComprehensivePPOForensics(kl_target=0.1), ComprehensivePPOForensics(kl_target=0.1)
    for step, row in enumerate(healthy(300)):
        good = well.update(step, **row)
        if step > 150:
            ramp = 1.05 ** (step - 150)
            row |= {"kl": row["kl"] * ramp, "policy_grad_norm": row["policy_grad_norm"] * ramp}
            row |= {"reward_mean": row["reward_mean"] - 0.02 * (step - 150)}
        bad = ill.update(step, **row)
    assert well.get_health_summary()["state"] in ("healthy", "recovered")
    assert min(good.overall_health_score, good.training_stability_score, good.convergence_quality_score) > 0.9
    assert ill.get_health_summary()["status"] == "critical"
    assert bad.overall_health_score < 0.3
    assert bad.convergence_quality_score < 0.1


def test_scores_are_nan_until_there_is_evidence() -> None:
    forensics = ComprehensivePPOForensics()
    assert forensics.get_health_summary()["status"] == "no_data"
    nothing = forensics.update(1)
    assert math.isnan(nothing.overall_health_score)
    assert math.isnan(nothing.training_stability_score)
    assert math.isnan(nothing.convergence_quality_score)
    assert forensics.get_health_summary()["status"] == "no_data"
    assert forensics.get_health_summary()["overall_health_score"] is None
    assert all(part != part for parts in nothing.score_parts.values() for part in parts.values())


def test_what_is_not_logged_is_nan_and_never_zero() -> None:
    metrics = ComprehensivePPOForensics().update(3, reward_mean=0.5, kl=None)
    assert metrics.metrics == {"reward_mean": 0.5}
    assert all(math.isnan(value) for value in (metrics.kl, metrics.kl_coef, metrics.entropy, metrics.reward_std))


def test_aliases_are_read_by_the_catalogue() -> None:
    metrics = ComprehensivePPOForensics().update(
        1,
        kl=0.1,
        entropy=1.0,
        learning_rate=1e-5,
        grad_norm_policy=0.5,
        grad_norm_value=0.4,
        total_grad_norm=0.9,
        clip_fraction=0.2,
    )
    assert metrics.metrics == {
        "kl_mean": 0.1, "entropy_mean": 1.0, "lr": 1e-5, "policy_grad_norm": 0.5, "value_grad_norm": 0.4, "grad_norm": 0.9,
        "clip_frac": 0.2,
    }  # fmt: skip
    assert metrics.gradient_norms_metrics is not None
    assert metrics.gradient_norms_metrics.total_grad_norm == 0.9


def test_a_metric_that_nobody_knows_is_kept_if_it_is_a_number() -> None:
    forensics = ComprehensivePPOForensics()
    assert forensics.update(1, my_metric=np.float32(2.5), flag=True).metrics == {"my_metric": 2.5, "flag": 1.0}
    for wrong in ("high", [1, 2], {"a": 1}, np.zeros(3)):
        with pytest.raises(UsageError, match="Expected `my_metric` to be a number"):
            forensics.update(2, my_metric=wrong)
    with pytest.raises(UsageError, match="Expected `kl` to be a number, got 'high'"):
        forensics.update(2, kl="high")
    with pytest.raises(UsageError, match="Expected `step` to be a whole number"):
        forensics.update(1.5)  # type: ignore[arg-type]
    assert forensics.engine.events == 1


def test_a_sample_of_advantages_becomes_metrics_of_the_step() -> None:
    sample = np.random.default_rng(0).normal(0.3, 2.0, (8, 32))
    for name in ("advantages", "advantage_samples"):
        metrics = ComprehensivePPOForensics().update(1, **{name: sample})
        assert metrics.metrics["advantage_mean"] == pytest.approx(sample.mean())
        assert metrics.metrics["advantage_p95"] == pytest.approx(np.percentile(sample, 95))
        assert metrics.advantage_statistics_metrics is not None
        assert metrics.advantage_statistics_metrics.advantage_std == pytest.approx(sample.std(ddof=1))
    for number in (0.25, np.float64(0.25), np.array(0.25)):
        assert ComprehensivePPOForensics().update(1, advantages=number).metrics == {"advantage_mean": 0.25}


@pytest.mark.parametrize(
    ("switch", "tracker", "field"),
    [
        ("enable_kl_schedule_tracking", "kl_schedule", "kl_schedule_metrics"),
        ("enable_gradient_norms_analysis", "gradient_norms", "gradient_norms_metrics"),
        ("enable_advantage_statistics", "advantage_statistics", "advantage_statistics_metrics"),
        ("enable_length_bias_detection", "length_bias", "length_bias_metrics"),
    ],
)
def test_a_switch_turns_a_tracker_and_its_detectors_off(
    switch: str, tracker: str, field: str, healthy: Healthy, assert_strict: Check
) -> None:
    forensics = ComprehensivePPOForensics(**{switch: False})  # type: ignore[arg-type]
    full = ComprehensivePPOForensics()
    for step, row in enumerate(healthy(20)):
        metrics = forensics.update(step, **row, length_reward_corr=0.9)
    assert getattr(metrics, field) is None
    assert tracker not in forensics.get_comprehensive_analysis()["trackers"]
    names = {detector.family for detector in forensics.engine.detectors} | {
        detector.type for detector in forensics.engine.detectors
    }
    assert tracker not in names
    assert len(forensics.engine.detectors) < len(full.engine.detectors)
    assert tracker != "length_bias" or forensics.get_length_bias_analysis() == {"enabled": False, "detected": False}
    assert_strict(forensics.get_comprehensive_analysis())


def test_the_default_target_is_in_force() -> None:
    default = ComprehensivePPOForensics()
    assert default.engine.context == {"kl_target": 0.1, "kl_target_tolerance": 0.05}
    for step in range(150):
        metrics = default.update(step, kl=1.0)
    assert metrics.kl_schedule_metrics is not None and metrics.kl_schedule_metrics.time_in_target_range == 0.0
    assert metrics.overall_health_score <= 0.3
    assert "target_range_anomaly" in [anomaly["type"] for anomaly in default.get_anomalies()]
    default.reset()
    assert default.engine.context == {"kl_target": 0.1, "kl_target_tolerance": 0.05}


def test_without_a_target_no_kl_is_too_far_from_it() -> None:
    free = ComprehensivePPOForensics(kl_target=None)
    for step in range(150):
        metrics = free.update(step, kl=1.0 + 0.01 * (step % 3))
    assert free.engine.context == {} and free.get_anomalies() == []
    assert metrics.overall_health_score == 1.0


def test_an_event_is_not_changed() -> None:
    event = Event(1, {"kl_mean": 0.1}, extra={"response_data": [{"length": n, "reward": n} for n in range(40)]})
    before = repr(event)
    forensics = ComprehensivePPOForensics()
    metrics = forensics.observe(event)
    assert repr(event) == before
    assert metrics.length_bias_metrics is not None
    assert metrics.length_bias_metrics.rank_correlation == 1.0
    assert forensics.engine.series["length_reward_corr"].last == 1.0


def test_status_follows_what_stands(healthy: Healthy) -> None:
    forensics = ComprehensivePPOForensics()
    for step, row in enumerate(healthy(40)):
        forensics.update(step, **row)
    assert forensics.get_health_summary()["status"] == "healthy"
    for step in range(40, 60):
        forensics.update(step, kl=math.nan, reward_mean=math.nan, loss=math.nan)
    assert forensics.get_health_summary()["status"] == "critical"
    assert forensics.current().overall_health_score <= 0.3


def test_save_analysis_leaves_a_whole_file_or_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forensics = ComprehensivePPOForensics()
    forensics.update(1, kl=0.1)
    path = tmp_path / "deep" / "analysis.json"
    assert forensics.save_analysis(str(path)) == path
    first = path.read_text()
    forensics.update(2, kl=0.2)

    def fail(*_: Any) -> None:
        raise OSError("no space")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", fail)
        with pytest.raises(OSError, match="no space"):
            forensics.save_analysis(path)
    assert path.read_text() == first
    assert [child.name for child in path.parent.iterdir()] == ["analysis.json"]
