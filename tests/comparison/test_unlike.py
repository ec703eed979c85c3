"""Runs whose metrics mean different things: what is left out of a comparison, and what is said about it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from rldk.comparison import compare_results
from rldk.comparison.gate import check_run
from rldk.ingest import read_runs
from rldk.judge.result import Result
from rldk.judge.scan import judge_run

PPO = {
    "objective/kl": 8.0,
    "objective/scores": 0.5,
    "policy/approxkl_avg": 0.005,
    "loss/policy_avg": -0.01,
    "loss/value_avg": 0.5,
}
GRPO = {"kl": 0.03, "reward": 0.5, "reward_std": 0.3, "frac_reward_zero_std": 0.1, "completions/mean_length": 200.0, "loss": 0.01}
DPO = {"rewards/chosen": 1.0, "rewards/rejected": -1.0, "rewards/margins": 2.0, "rewards/accuracies": 0.8, "loss": 0.4}


def judged(folder: Path, name: str, row: dict[str, float], seed: int = 0) -> Result:
    rng = np.random.default_rng(seed)
    rows = [{"step": step, **{key: value * (1 + 0.05 * rng.normal()) for key, value in row.items()}} for step in range(60)]
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return judge_run(read_runs(path).runs[0])


def test_kl_in_different_units_is_left_out(tmp_path: Path) -> None:
    found = compare_results([judged(tmp_path, "ppo", PPO), judged(tmp_path, "grpo", GRPO, 1)])
    assert found.notes() == ["kl_mean is left out: it is per response in ppo and per token in grpo."]
    assert found.divergences["grpo"] == [] and [metric for metric, _ in found.ends() if "kl" in metric] == ["kl_update"]
    assert found.to_dict()["notes"] == found.notes()


def test_kl_in_the_same_unit_is_compared(tmp_path: Path) -> None:
    found = compare_results([judged(tmp_path, "one", PPO), judged(tmp_path, "two", {**PPO, "objective/kl": 80.0}, 1)])
    assert found.notes() == [] and [one.metric for one in found.divergences["two"]] == ["kl_mean"]


def test_runs_of_different_kinds(tmp_path: Path) -> None:
    found = compare_results([judged(tmp_path, "grpo", GRPO), judged(tmp_path, "dpo", DPO)])
    (note,) = found.notes()
    assert "different kinds: grpo is reinforcement learning and dpo is preference training." in note


def test_the_gate_says_what_it_left_out(tmp_path: Path) -> None:
    checks = check_run(judged(tmp_path, "grpo", GRPO), frozenset(), {}, {}, [judged(tmp_path, "ppo", PPO)])
    assert "kl_mean is left out: it is per token in this run and per response in the baseline." in checks[-1].message
