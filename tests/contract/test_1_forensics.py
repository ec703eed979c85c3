"""Section 1 and the forensics of section 6: the front of the judge, its records, and the trackers alone."""

from __future__ import annotations

import inspect
import json
import math

import pytest

from rldk.core.errors import UsageError
from rldk.forensics import (
    AdvantageStatisticsTracker,
    ComprehensivePPOForensics,
    ComprehensivePPOMetrics,
    GradientNormsAnalyzer,
    KLScheduleTracker,
    scan_ppo_events,
)

TYPES = {
    "kl_schedule": (
        "kl_trend_anomaly kl_volatility_anomaly target_range_anomaly controller_responsiveness_anomaly "
        "controller_overshoot_anomaly controller_oscillation_anomaly coef_adaptation_anomaly"
    ),
    "gradient_norms": (
        "exploding_gradient_anomaly vanishing_gradient_anomaly gradient_imbalance_anomaly gradient_flow_anomaly "
        "gradient_balance_anomaly gradient_stability_anomaly ratio_trend_anomaly"
    ),
    "advantage_statistics": (
        "advantage_bias_anomaly advantage_scale_anomaly advantage_distribution_anomaly advantage_normalization_anomaly "
        "advantage_trend_anomaly advantage_volatility_anomaly advantage_skewness_anomaly advantage_kurtosis_anomaly"
    ),
}
ANALYSIS = (
    "version", "total_steps", "overall_health_score", "training_stability_score", "convergence_quality_score", "anomalies",
    "trackers",
)  # fmt: skip
ANOMALY = ("type", "severity", "tracker", "step", "index", "message", "value", "threshold", "advice")


def forensics_after(rows: int, **more: float) -> ComprehensivePPOForensics:
    forensics = ComprehensivePPOForensics(
        kl_target=0.1, kl_target_tolerance=0.05, window_size=100, enable_kl_schedule_tracking=True,
        enable_gradient_norms_analysis=True, enable_advantage_statistics=True, enable_length_bias_detection=True,
        length_bias_threshold=0.35,
    )  # fmt: skip
    for step in range(rows):
        forensics.update(
            step=step, **{"kl": 0.12, "kl_coef": 1.1, "entropy": 1.8, "reward_mean": 0.6 + 0.001 * step, "reward_std": 0.3,
            "policy_grad_norm": 0.7, "value_grad_norm": 0.4, "advantage_mean": 0.05, "advantage_std": 1.2, **more},
        )  # fmt: skip
    return forensics


def test_the_example_of_the_contract(tmp_path) -> None:
    forensics = forensics_after(60)
    metrics = forensics.update(step=100, kl=0.12, reward_mean=0.6, learning_rate=1e-6, clip_frac=0.1, value_loss=0.2)
    assert isinstance(metrics, ComprehensivePPOMetrics)
    analysis = forensics.get_comprehensive_analysis()
    assert set(ANALYSIS) <= set(analysis) and analysis["total_steps"] == 61
    assert set(analysis["trackers"]) == {"kl_schedule", "gradient_norms", "advantage_statistics", "length_bias"}
    assert forensics.get_health_summary()["status"] in ("no_data", "healthy", "degraded", "warning", "critical")
    assert isinstance(forensics.get_length_bias_analysis(), dict) and isinstance(forensics.get_anomalies(), list)
    forensics.save_analysis(tmp_path / "analysis.json")
    assert json.loads((tmp_path / "analysis.json").read_text())["version"] == analysis["version"]


def test_the_types_of_the_contract_are_in_the_table_under_their_tracker() -> None:
    from rldk.detectors.table import DETECTORS

    table = {kind.type: kind.family for kind in DETECTORS}
    for tracker, types in TYPES.items():
        assert {name: table.get(name) for name in types.split()} == dict.fromkeys(types.split(), tracker)


def test_both_scans_of_a_one_shot_iterator() -> None:
    rows = [{"step": step, "kl": 0.1, "reward_mean": 0.5, "entropy": 1.0} for step in range(30)]
    short = scan_ppo_events(iter(rows))
    assert set(short) == {"version", "rules_fired", "earliest_step", "stats"}
    full = ComprehensivePPOForensics().scan_ppo_events_comprehensive(iter(rows))
    assert set(short) | {"comprehensive_analysis", "enhanced_version"} == set(full)


def test_every_anomaly_is_a_dict_with_the_fields_of_the_contract() -> None:
    found = forensics_after(150, kl=1.0).get_anomalies()
    assert found and all(set(ANOMALY) <= set(anomaly) for anomaly in found)
    assert {anomaly["severity"] for anomaly in found} <= {"warning", "critical"}


def test_what_was_not_logged_is_nan_and_an_old_snapshot_does_not_change() -> None:
    forensics = ComprehensivePPOForensics()
    first = forensics.update(step=1, kl=0.1)
    before = first.to_dict()
    assert math.isnan(first.reward_mean) and first.to_dict()["reward_mean"] is None
    for step in range(2, 40):
        forensics.update(step=step, kl=0.3, reward_mean=1.0)
    assert first.to_dict() == before


def test_the_default_target_counts_in_the_unit_of_the_kl_that_is_given() -> None:
    assert inspect.signature(ComprehensivePPOForensics).parameters["kl_target"].default == 0.1
    forensics = ComprehensivePPOForensics()
    for step in range(150):
        forensics.update(step=step, kl=1.0)
    summary = forensics.get_comprehensive_analysis()["trackers"]["kl_schedule"]
    assert summary["time_in_target_range"] == 0.0
    assert forensics.get_health_summary()["overall_health_score"] <= 0.3


def test_a_scan_of_a_foreign_log_has_no_target() -> None:
    rows = [{"step": step, "kl": 1.0 + 0.01 * (step % 3)} for step in range(150)]
    assert scan_ppo_events(iter(rows))["rules_fired"] == []


def test_records_offer_the_flat_form() -> None:
    forensics = forensics_after(40)
    shown = forensics.update(step=40, kl=0.12).to_dict()
    assert shown["kl_schedule_current_kl"] == shown["kl_schedule_metrics"]["current_kl"] == 0.12
    for prefix in ("kl_schedule_", "gradient_norms_", "advantage_statistics_", "length_bias_"):
        assert any(name.startswith(prefix) for name in shown)
    json.dumps(shown, allow_nan=False)


@pytest.mark.parametrize(("tracker", "healthy", "sick", "family"), [
    (KLScheduleTracker(), {"kl": 0.1}, {"kl": 1.0}, "kl_schedule"),
    (GradientNormsAnalyzer(), {"policy_grad_norm": 1.0}, {"policy_grad_norm": 1e6}, "gradient_norms"),
    (
        AdvantageStatisticsTracker(), {"advantage_mean": 0.0, "advantage_std": 1.0},
        {"advantage_mean": 40.0, "advantage_std": 1.0}, "advantage_statistics",
    ),
], ids=["kl", "gradients", "advantages"])  # fmt: skip
def test_each_tracker_alone_reports_its_own_anomalies(tracker, healthy, sick, family) -> None:
    for step in range(60):
        tracker.update(step, **healthy)
    assert tracker.get_anomalies() == []
    for step in range(60, 160):
        tracker.update(step, **sick)
    found = tracker.get_anomalies()
    assert found and {anomaly["tracker"] for anomaly in found} == {family}
    assert tracker.get_summary()["anomalies"] == found
    again = type(tracker)()
    again.load_state_dict(json.loads(json.dumps(tracker.state_dict())))
    assert again.get_anomalies() == found
    tracker.reset()
    assert tracker.get_anomalies() == []


def test_a_misspelt_metric_is_refused_with_the_nearest_name() -> None:
    forensics = ComprehensivePPOForensics()
    with pytest.raises(UsageError, match=r"`kll`.*kl"):
        forensics.update(step=1, kll=0.1)
    with pytest.raises(UsageError, match=r"`reward_maen`.*reward_mean"):
        forensics.update(step=1, reward_maen=0.1)
    assert forensics.update(step=1, kl=0.1, my_own_number=3.0).metrics["my_own_number"] == 3.0
