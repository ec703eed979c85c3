"""Train a tiny model with every callback attached, and check every file that they write against the contract.

    python trl_matrix_run.py OUT_DIR ppo|grpo|rloo|dpo|sft ...

Runs in any environment that has rldk and a TRL that it supports; prints a line that begins with `ok` for each trainer, and
ends with an exception where something is wrong.
Nothing that rldk says through its logger, and no warning raised in its code, is let pass.
"""

from __future__ import annotations

import csv
import json
import logging
import math
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

HIDDEN = ("bitsandbytes", "mlflow", "peft", "ray", "tensorboard", "trackio", "wandb")
"""Packages of the development environment that TRL does not require; importing them takes a quarter of the time. With all of
them, the same is trained by test_trl_files.py."""
if __name__ == "__main__":
    sys.modules.update(dict.fromkeys(HIDDEN))

import trl_tiny  # noqa: E402

import rldk  # noqa: E402

_FIELDS = (
    "reward_mean reward_std reward_min reward_max kl_mean kl_std entropy_mean clip_frac value_loss policy_loss value_policy_loss "
    "policy_grad_norm value_grad_norm value_mean value_std rollout_length_mean rollout_length_std advantage_mean advantage_std "
    "kl_coef target_kl advantage_normalized clip_range clip_range_value batch_size global_step model_type vocab_size "
    "tokenizer_vocab_size dataset_size rollout_buffer_size rollout_buffer_pos rollout_mean_reward rollout_std_reward "
    "policy_total_params policy_trainable_params policy_lr value_total_params value_trainable_params value_lr"
)
PPO_FIELDS = _FIELDS.split()
"""The 40 fields of the contract."""

NEVER = {"ppo": {"value_policy_loss", "target_kl"}}
"""Fields that this trainer has nothing for: the first is of old logs, and it has no target."""

_FILES = (
    "events.jsonl metrics.csv alerts.json config.json final_report.json comprehensive_analysis.json health_summary.json "
    "comprehensive_metrics.csv comprehensive_metrics.json checkpoint_summary.csv"
)
ALL_FILES = _FILES.split()

EXPECTED = {
    "ppo": "reward_mean reward_std kl_mean kl_std entropy_mean clip_frac policy_grad_norm value_grad_norm advantage_mean "
    "advantage_skewness advantage_p95 explained_variance eos_frac rollout_length_std policy_lr length_reward_corr "
    "generation_time loss ratio_min ratio_max advantage_raw weight_change weight_change_value distinct_prompts "
    "distinct_prompts_frac dropout_active reference_is_policy max_response_length num_iterations temperature "
    "distinct_responses_frac repetition_frac",
    "grpo": "reward_mean reward_std reward_zero_std_frac kl_mean entropy_mean grad_norm advantage_std rollout_length_mean "
    "rollout_length_std truncated_frac length_reward_corr kl_coef reward_function_mean/good_words "
    "weight_change distinct_prompts distinct_prompts_frac dropout_active reference_is_policy max_response_length "
    "num_generations num_iterations temperature distinct_responses_frac repetition_frac",
    "rloo": "reward_mean kl_mean entropy_mean grad_norm advantage_std rollout_length_mean rollout_length_std kl_coef "
    "clip_range advantage_normalized rollout_buffer_size reward_function_mean/good_words weight_change distinct_prompts "
    "distinct_prompts_frac dropout_active reference_is_policy max_response_length num_generations distinct_responses_frac "
    "repetition_frac",
    "dpo": "loss grad_norm preference_margin preference_accuracy chosen_reward_mean rejected_reward_mean policy_lr "
    "weight_change dropout_active reference_is_policy",
    "sft": "loss grad_norm lr epoch policy_total_params weight_change",
}
"""Metrics that each trainer's events must hold, logged or probed."""


class Overheard(logging.Handler):
    """What rldk says through its logger."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(self.format(record))


def all_callbacks(out: Path, run_id: str) -> list[Any]:
    """Every kind at once, in one folder."""
    from rldk.integrations import trl as kit

    quiet = {"terminal": False}
    return [
        kit.RLDKCallback(out, run_id=run_id, log_interval=2, alert_thresholds={"kl_divergence": 50.0}, **quiet),
        kit.RLDKMonitor(out, **quiet),
        kit.CustomRLDKCallback(out, performance_benchmarks={"target_reward": -100.0, "max_kl_divergence": 60.0}, **quiet),
        kit.PPOMonitor(out, kl_threshold=70.0, run_id=run_id, **quiet),
        kit.AdvancedPPOMonitor(out, kl_threshold=80.0, **quiet),
        kit.CheckpointMonitor(out),
        kit.ComprehensivePPOMonitor(out, window_size=50, **quiet),
        kit.EventWriterCallback(out / "own_events.jsonl"),
    ]


def build(kind: str, out: Path, callbacks: list[Any], steps: int) -> Any:
    saving = {"save_strategy": "steps", "save_steps": steps // 2}
    if kind == "ppo":
        return trl_tiny.ppo_trainer(out, callbacks, steps, **saving)
    if kind in ("grpo", "rloo"):
        return trl_tiny.group_trainer(kind.upper(), out, callbacks, steps, **saving)
    return trl_tiny.other_trainer(kind.upper(), out, callbacks, steps, **saving)


def check_events(path: Path, run_id: str, steps: int, kind: str) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert [event["step"] for event in events] == list(range(1, steps + 1)), [event["step"] for event in events]
    for event in events:
        assert event["model_info"]["run_id"] == run_id and event["model_info"]["phase"] == "train"
        assert event["wall_time"] > 1e9 and "seed" in event["rng"]
    last = events[-1]["metrics"]
    missing = [name for name in EXPECTED[kind].split() if name not in last]
    assert not missing, f"not in the events of {kind}: {missing}; there are {sorted(last)}"
    assert all(isinstance(value, (int, float)) for value in last.values())
    return events


def check_tables(folder: Path, run_id: str, steps: int, kind: str, events: list[dict[str, Any]]) -> None:
    with (folder / f"{run_id}_metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == list(range(1, steps + 1))
    assert set(PPO_FIELDS) <= set(rows[0])
    for row, event in zip(rows, events, strict=True):
        for name in ("lr", "reward_mean", "loss"):
            if name in event["metrics"]:
                assert math.isclose(float(row[name]), event["metrics"][name], rel_tol=1e-12)
    if kind == "ppo":
        empty = {name for name in PPO_FIELDS if name != "global_step" and not rows[-1][name]}
        assert empty == NEVER["ppo"], empty
    with (folder / f"{run_id}_comprehensive_metrics.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == steps
    with (folder / f"{run_id}_checkpoint_summary.csv").open(newline="") as file:
        saved = list(csv.DictReader(file))
    assert [int(row["step"]) for row in saved] == [steps // 2, 2 * (steps // 2)], saved
    assert float(saved[1]["update_ratio"]) > 0 and float(saved[1]["nonfinite_parameters"]) == 0


def check_reports(folder: Path, run_id: str, steps: int) -> None:
    def read(ending: str) -> Any:
        return json.loads((folder / f"{run_id}_{ending}").read_text())

    report = read("final_report.json")
    assert report["events"] == steps and report["verdict"] in ("healthy", "warning", "no_data"), report["verdict"]
    assert report["coverage"]["failed"] == {} and report["health"]["status"] in ("healthy", "degraded", "warning", "no_data")
    assert report["metrics"]["lr"]["count"] == steps
    assert isinstance(read("alerts.json"), list)
    analysis = read("comprehensive_analysis.json")
    for name in ("version", "total_steps", "overall_health_score", "training_stability_score", "convergence_quality_score"):
        assert name in analysis, name
    assert analysis["total_steps"] == steps
    assert set(analysis["trackers"]) == {"kl_schedule", "gradient_norms", "advantage_statistics", "length_bias"}
    assert read(f"comprehensive_analysis_step_{steps // 2}.json")["total_steps"] in (steps // 2, steps // 2 - 1)
    assert {"status", "current_kl", "critical_anomalies"} <= set(read("health_summary.json"))
    assert len(read("comprehensive_metrics.json")) == steps


def check_records(callbacks: list[Any], kind: str, steps: int) -> None:
    from dataclasses import fields

    metrics, custom = callbacks[0].metrics, callbacks[2]
    ppo, checkpoints = callbacks[3].ppo_metrics, callbacks[5].checkpoint_metrics
    names = {one.name for one in fields(metrics)}
    assert set(PPO_FIELDS) <= names and all(getattr(metrics, name) is not None for name in names)
    assert metrics.global_step == steps and ppo.global_step == steps and checkpoints.step == 2 * (steps // 2)
    if kind in ("ppo", "grpo", "rloo"):
        assert custom.benchmarks["target_reward"]["reached"] and custom.benchmarks["target_reward"]["step"] == 1
        assert ppo.reward_mean == metrics.reward_mean == metrics.reward_mean


def main(kind: str, out: Path, steps: int = 6) -> str:
    heard = Overheard()
    logging.getLogger("rldk").addHandler(heard)
    shutil.rmtree(out, ignore_errors=True)
    run_id, folder = f"{kind}_run", out / "rldk"
    callbacks = all_callbacks(folder, run_id)
    trainer = build(kind, out / "training", callbacks, steps)
    trl_tiny.settle()
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        trainer.train()
    ours = [str(one.message) for one in raised if Path(one.filename).is_relative_to(Path(rldk.__file__).parent)]
    assert not heard.said and not ours, heard.said + ours
    events = check_events(folder / f"{run_id}_events.jsonl", run_id, steps, kind)
    assert check_events(folder / "own_events.jsonl", run_id, steps, kind) == events
    check_tables(folder, run_id, steps, kind, events)
    check_reports(folder, run_id, steps)
    check_records(callbacks, kind, steps)
    written = sorted(path.name for path in folder.iterdir())
    wanted = [f"{run_id}_{ending}" for ending in ALL_FILES] + ["own_events.jsonl"]
    wanted += [f"{run_id}_comprehensive_analysis_step_{step}.json" for step in (steps // 2, 2 * (steps // 2))]
    assert written == sorted(wanted), written
    assert len({id(callback.monitor) for callback in callbacks}) == 1
    import transformers
    import trl

    return f"ok {kind} trl {trl.__version__} transformers {transformers.__version__} metrics {len(events[-1]['metrics'])}"


if __name__ == "__main__":
    if len(sys.argv) < 3 or not set(sys.argv[2:]) <= set(EXPECTED):
        sys.exit(f"usage: python trl_matrix_run.py OUT_DIR {'|'.join(EXPECTED)} ...")
    for kind in sys.argv[2:]:
        print(main(kind, Path(sys.argv[1]) / kind))
