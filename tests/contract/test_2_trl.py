"""Section 2: the callbacks of TRL, their names and parameters, the record of a step, the keys that are read, and the alerts."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import fields
from math import isfinite, isnan
from typing import Any

import pytest

from rldk.core.catalog import resolve

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default")]
UPDATES = 12

MODULES = {
    "callbacks": "RLDKCallback RLDKMetrics RLDKMonitor CustomRLDKCallback EventWriterCallback",
    "monitors": "PPOMonitor PPOMetrics CheckpointMonitor CheckpointMetrics ComprehensivePPOMonitor AdvancedPPOMonitor",
    "dashboard": "RLDKDashboard",
    "ppo_trainer": "create_ppo_trainer",
}
FIELDS = (
    "reward_mean reward_std reward_min reward_max kl_mean kl_std entropy_mean clip_frac value_loss policy_loss value_policy_loss "
    "policy_grad_norm value_grad_norm value_mean value_std rollout_length_mean rollout_length_std advantage_mean advantage_std "
    "kl_coef target_kl advantage_normalized clip_range clip_range_value batch_size global_step model_type vocab_size "
    "tokenizer_vocab_size dataset_size rollout_buffer_size rollout_buffer_pos rollout_mean_reward rollout_std_reward "
    "policy_total_params policy_trainable_params policy_lr value_total_params value_trainable_params value_lr"
)
NOT_IN_TRL = {"value_policy_loss", "target_kl"}
"""TRL's PPO has neither: the first is of old logs, and the second is a setting that it does not know."""

OLD_KEYS = {
    "ppo/rewards/mean": "reward_mean", "ppo/rewards/std": "reward_std", "ppo/rewards/min": "reward_min",
    "ppo/rewards/max": "reward_max", "ppo/policy/kl_mean": "kl_mean", "ppo/policy/kl_std": "kl_std",
    "ppo/policy/entropy": "entropy_mean", "ppo/policy/clipfrac": "clip_frac", "ppo/policy/policy_loss": "policy_loss",
    "ppo/policy/grad_norm": "policy_grad_norm", "ppo/val/value_loss": "value_loss", "ppo/val/policy_loss": "value_policy_loss",
    "ppo/val/grad_norm": "value_grad_norm", "ppo/val/mean": "value_mean", "ppo/val/std": "value_std",
    "ppo/rollout/length_mean": "rollout_length_mean", "ppo/rollout/length_std": "rollout_length_std",
    "ppo/advantages/mean": "advantage_mean", "ppo/advantages/std": "advantage_std",
}  # fmt: skip
NEW_KEYS = {
    "objective/kl": "kl_mean", "objective/scores": "reward_mean", "policy/approxkl_avg": "kl_update",
    "policy/clipfrac_avg": "clip_frac", "policy/entropy_avg": "entropy_mean", "loss/policy_avg": "policy_loss",
    "loss/value_avg": "value_loss", "val/ratio": "ratio_mean", "val/num_eos_tokens": "eos_count", "lr": "lr",
}  # fmt: skip
DEFAULTS = {
    "RLDKCallback": {
        "output_dir": "./rldk_logs", "log_interval": 10, "jsonl_log_interval": 1, "enable_jsonl_logging": True,
        "enable_resource_monitoring": True, "enable_checkpoint_analysis": True,
    },
    "CheckpointMonitor": {"enable_parameter_analysis": True, "enable_gradient_analysis": True},
    "RLDKDashboard": {"port": 8501, "auto_refresh": True},
}  # fmt: skip


@pytest.mark.parametrize("module", MODULES)
def test_names_are_where_the_contract_says(module: str) -> None:
    pytest.importorskip("trl")
    kit, found = importlib.import_module("rldk.integrations.trl"), importlib.import_module(f"rldk.integrations.trl.{module}")
    for name in MODULES[module].split():
        assert getattr(kit, name) is getattr(found, name)


@pytest.mark.parametrize("name", DEFAULTS)
def test_parameters_have_the_defaults_of_the_contract(name: str) -> None:
    pytest.importorskip("trl")
    given = inspect.signature(getattr(importlib.import_module("rldk.integrations.trl"), name)).parameters
    assert {key: given[key].default for key in DEFAULTS[name]} == DEFAULTS[name]


def test_callbacks_and_dashboard_agree_on_the_folder_unless_told_otherwise() -> None:
    pytest.importorskip("trl")
    from rldk.integrations import trl as kit

    every = [getattr(kit, name) for name in kit.__all__]
    given = [inspect.signature(one).parameters for one in every if isinstance(one, type)]
    assert {one["output_dir"].default for one in given if "output_dir" in one} == {"./rldk_logs"}


def test_all_parameters_of_the_contract_are_taken_and_no_file_is_written_twice(ppo_run) -> None:
    assert len(ppo_run.callbacks) == 8 and len({id(one.monitor) for one in ppo_run.callbacks.values()}) == 1
    assert [event["step"] for event in ppo_run.events()] == list(range(1, UPDATES + 1))
    assert len(ppo_run.rows("metrics.csv")) == UPDATES


def test_a_trainer_is_built_from_one_name_with_one_event_writer() -> None:
    pytest.importorskip("trl")
    from rldk.integrations.trl import create_ppo_trainer

    given = inspect.signature(create_ppo_trainer).parameters
    assert {"model_name", "ppo_config", "train_dataset", "callbacks", "event_log_path"} <= set(given)
    assert given["event_log_path"].default is None  # tests/integrations/test_trl_shells.py trains with it


def test_a_record_has_forty_typed_fields_of_which_none_is_none(ppo_run) -> None:
    names, record = FIELDS.split(), ppo_run.callbacks["RLDKCallback"].current_metrics
    assert len(names) == 40 == len({one.name for one in fields(record)} & set(names))
    for one in fields(record):
        value = getattr(record, one.name)
        assert type(value).__name__ == one.type, f"{one.name} is {value!r}"
    known = {name for name in names if name != "model_type" and isfinite(getattr(record, name))} | {"model_type"}
    assert set(names) - known == NOT_IN_TRL and record.model_type == "llama" and record.global_step == UPDATES
    assert all(isnan(getattr(record, name)) for name in NOT_IN_TRL)  # missing is missing, and never 0


def test_a_record_has_the_general_fields(ppo_run) -> None:
    record = ppo_run.callbacks["RLDKCallback"].current_metrics
    wanted = ("loss", "learning_rate", "gradient_norm", "cpu_memory_gb", "memory_usage", "training_stability", "step_time")
    assert all(isfinite(getattr(record, name)) for name in wanted)


def test_old_keys_are_read() -> None:
    logs = {key: float(number) for number, key in enumerate(OLD_KEYS, 1)}
    found = resolve(logs).metrics
    assert {name: found.get(name) for name in OLD_KEYS.values()} == {OLD_KEYS[key]: value for key, value in logs.items()}


def test_the_keys_that_trl_logs_today_are_read(ppo_run) -> None:
    sources = ppo_run.callbacks["RLDKCallback"].monitor.sources
    assert {name: sources.get(name) for name in NEW_KEYS.values()} == {name: key for key, name in NEW_KEYS.items()}
    for probed in ("policy_grad_norm", "value_grad_norm", "advantage_mean", "advantage_std", "reward_std", "rollout_length_mean"):
        assert sources[probed] == "probe"


@pytest.mark.parametrize(("metric", "limit"), [
    ("kl_mean", 0.08), ("clip_frac", 0.001), ("grad_norm", 0.01), ("memory_usage", 0.0001),
])  # fmt: skip
def test_a_limit_of_the_user_is_a_hard_one_and_the_stricter_of_two_counts(ppo_run, metric: str, limit: float) -> None:
    crossed = [one for one in ppo_run.json("alerts.json") if one["type"] == "user_limit_exceeded" and metric in one["evidence"]]
    assert crossed and crossed[0]["threshold"] == limit and crossed[0]["evidence"][metric] > limit
    steps = {event["step"]: event["metrics"].get(metric, 0.0) for event in ppo_run.events()}
    assert crossed[0]["step"] == next(step for step, value in steps.items() if value > limit)


def test_a_minimum_of_stability_alerts(ppo_run) -> None:
    assert [one["step"] for one in ppo_run.json("alerts.json") if one["type"] == "low_training_stability"]


def test_without_limits_the_baseline_judges(tmp_path) -> None:
    pytest.importorskip("trl")
    from rldk.integrations.trl import RLDKCallback

    callback = RLDKCallback(tmp_path)
    assert callback.options.limits == {}


def raised_by(rows: list[dict[str, float]], **options: Any) -> set[str]:
    from rldk.monitor import Monitor

    monitor = Monitor(**options)
    for step, row in enumerate(rows):
        monitor.observe({"step": step, "metrics": row})
    monitor.close()
    return {anomaly.type for anomaly in monitor.anomalies}


def test_a_collapse_and_an_exploited_reward_alert_without_configuration() -> None:
    healthy = [{"reward_mean": 0.5 + 0.004 * n, "entropy_mean": 2.0, "kl_mean": 0.02, "rollout_length_mean": 60.0}
               for n in range(80)]  # fmt: skip
    fallen = [{**healthy[-1], "reward_mean": 0.82 - 0.04 * n, "entropy_mean": 2.0 - 0.09 * n} for n in range(20)]
    fallen += [{**fallen[-1]} for _ in range(30)]
    assert raised_by(healthy) == set()
    assert "policy_collapse" in raised_by(healthy + fallen)
    hacked = [{**healthy[-1], "reward_mean": 0.82 + 0.02 * n, "kl_mean": 0.02 * 1.12**n, "rollout_length_mean": 60 * 1.05**n}
              for n in range(60)]  # fmt: skip
    assert "reward_hacking" in raised_by(healthy + hacked)
