"""Every name that people may import is there, and every `__all__` is true."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil

import pytest

import rldk

CONTRACT = {
    "rldk.forensics": (
        "KLScheduleTracker", "GradientNormsAnalyzer", "AdvantageStatisticsTracker", "ComprehensivePPOForensics",
        "ComprehensivePPOMetrics", "scan_ppo_events",
    ),
    "rldk.forensics.kl_schedule_tracker": ("KLScheduleTracker",),
    "rldk.forensics.gradient_norms_analyzer": ("GradientNormsAnalyzer",),
    "rldk.forensics.advantage_statistics_tracker": ("AdvantageStatisticsTracker",),
    "rldk.forensics.comprehensive_ppo_forensics": ("ComprehensivePPOForensics", "ComprehensivePPOMetrics"),
    "rldk.forensics.ppo_scan": ("scan_ppo_events",),
    "rldk.adapters.trl": ("TRLAdapter",),
    "rldk.ingest": ("ingest_runs",),
    "rldk.testing": ("yield_adapter_checks", "yield_detector_checks"),
}  # fmt: skip
CONTRACT_OF_TRL = {
    "rldk.integrations.trl.callbacks": (
        "RLDKCallback", "RLDKMetrics", "RLDKMonitor", "CustomRLDKCallback", "EventWriterCallback",
    ),
    "rldk.integrations.trl.monitors": (
        "PPOMonitor", "PPOMetrics", "CheckpointMonitor", "CheckpointMetrics", "ComprehensivePPOMonitor", "AdvancedPPOMonitor",
    ),
    "rldk.integrations.trl.dashboard": ("RLDKDashboard",),
    "rldk.integrations.trl.ppo_trainer": ("create_ppo_trainer",),
}  # fmt: skip

CONTRACT_TYPES = """
kl_trend_anomaly kl_volatility_anomaly target_range_anomaly controller_responsiveness_anomaly controller_overshoot_anomaly
controller_oscillation_anomaly coef_adaptation_anomaly
exploding_gradient_anomaly vanishing_gradient_anomaly gradient_imbalance_anomaly gradient_flow_anomaly gradient_balance_anomaly
gradient_stability_anomaly ratio_trend_anomaly
advantage_bias_anomaly advantage_scale_anomaly advantage_distribution_anomaly advantage_normalization_anomaly
advantage_trend_anomaly advantage_volatility_anomaly advantage_skewness_anomaly advantage_kurtosis_anomaly
policy_collapse entropy_collapse entropy_explosion reward_hacking reward_saturation dead_reward plateau length_runaway
length_collapse length_bias eos_starvation kl_explosion kl_spike negative_kl clip_saturation ratio_explosion value_divergence
value_unexplained loss_explosion nonfinite_metric learning_rate_too_high train_inference_mismatch step_regression
throughput_drop memory_pressure preference_degenerate
""".split()  # noqa: SIM905  a list of this length reads better as text

MODULES = sorted(module.name for module in pkgutil.walk_packages(rldk.__path__, "rldk.") if not module.name.endswith("__main__"))


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in CONTRACT.items() for name in names])
def test_a_name_of_the_contract(module: str, name: str) -> None:
    assert hasattr(importlib.import_module(module), name)


@pytest.mark.full
@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in CONTRACT_OF_TRL.items() for name in names])
def test_a_name_of_the_contract_of_trl(module: str, name: str) -> None:
    own = getattr(importlib.import_module(module), name)
    assert getattr(importlib.import_module("rldk.integrations.trl"), name) is own


def test_all_is_true() -> None:
    rooms = {
        "rldk.integrations.trl": "transformers", "rldk.integrations.huggingface": "transformers",
        "rldk.integrations.ms_swift": "swift", "rldk.dashboard.page": "streamlit", "rldk.dashboard.app": "streamlit",
    }  # fmt: skip
    closed = tuple(room for room, library in rooms.items() if importlib.util.find_spec(library) is None)
    for module in MODULES:
        if not module.startswith(closed):
            loaded = importlib.import_module(module)
            names = getattr(loaded, "__all__", [])
            assert len(names) == len(set(names)), module
            assert [name for name in names if not hasattr(loaded, name)] == [], module


def test_every_type_of_anomaly_has_its_detector() -> None:
    from rldk.detectors.table import BY_TYPE, DETECTORS

    assert sorted(set(CONTRACT_TYPES) - set(BY_TYPE)) == []
    assert len(BY_TYPE) == len(DETECTORS)
