"""Faults in real trainings, each caught with the right type; a healthy one is left in peace. Longer runs are benchmarks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rldk.core.files import strict
from rldk.ingest import read_runs
from rldk.judge.scan import judge_run

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default")]
pytest.importorskip("trl")

CASES = [
    ("ppo", "lr_x100", 8, "learning_rate_too_high"),
    ("ppo", "kl_coef_0", 60, "kl_explosion"),  # 0 from the start is a choice; how far it leads is none
    ("ppo", "constant_reward", 24, "dead_reward"),
    ("ppo", "length_reward", 14, "length_bias"),
    ("grpo", "lr_x100", 10, "learning_rate_too_high"),
    ("grpo", "kl_coef_0", 16, "kl_penalty_off"),
    ("grpo", "constant_reward", 24, "dead_reward"),
    ("grpo", "length_reward", 14, "length_bias"),
    ("grpo", "lr_jump", 40, "learning_rate_too_high"),
]


@pytest.mark.parametrize(("kind", "fault", "updates", "kind_of_anomaly"), CASES)
def test_a_fault_is_caught_as_what_it_is(kind: str, fault: str, updates: int, kind_of_anomaly: str, tmp_path: Path) -> None:
    import trl_faults

    found = trl_faults.run(kind, fault, tmp_path, updates=updates)
    caught = found.caught()
    assert caught is not None, [one["type"] for one in found.alerts]
    assert caught["type"] == kind_of_anomaly
    assert caught["step"] > (found.onset or 0)
    (judged,) = read_runs([found.folder / "run_events.jsonl"]).runs  # a scan of the log finds the same
    scanned = [strict(one.to_dict()) for one in judge_run(judged).engine.anomalies]
    assert scanned == [strict(one.to_dict()) for one in found.anomalies]


def test_a_kl_coefficient_of_0_from_the_start_is_a_note(tmp_path: Path) -> None:
    import trl_faults

    found = trl_faults.run("ppo", "kl_coef_0", tmp_path, updates=10)
    assert found.alerts == []
    report = json.loads((found.folder / "run_final_report.json").read_text())
    assert report["verdict"] == "healthy"
    assert [note for note in report["notes"] if note.startswith("step 1: The KL coefficient is 0")]


@pytest.mark.parametrize("kind", ["ppo", "grpo"])
def test_a_healthy_run_has_nothing_critical(kind: str, tmp_path: Path) -> None:
    import trl_faults

    found = trl_faults.run(kind, "none", tmp_path, updates=15)
    assert found.error is None and found.first_critical() is None
