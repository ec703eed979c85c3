"""`TRLAdapter(path).can_handle()` and `.load()` on all that a TRL trainer leaves behind."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from rldk.adapters.trl import TRLAdapter
from rldk.core.errors import MissingDependencyError, RLDKError, UsageError

GRPO = {
    "loss": 0.0, "grad_norm": 0.5, "learning_rate": 1e-6, "num_tokens": 100.0, "completions/mean_length": 20.0,
    "completions/clipped_ratio": 0.25,
    "rewards/accuracy/mean": 0.5, "rewards/accuracy/std": 0.1, "reward": 0.5, "reward_std": 0.1, "frac_reward_zero_std": 0.0,
    "kl": 0.001,
    "entropy": 0.9, "clip_ratio/region_mean": 0.0, "epoch": 0.1,
}  # fmt: skip
GRPO_COLUMNS = [
    "step", "wall_time", "loss", "grad_norm", "lr", "num_tokens", "rollout_length_mean", "truncated_frac",
    "reward_function_mean/accuracy",
    "reward_function_std/accuracy", "reward_mean", "reward_std", "reward_zero_std_frac", "kl_mean", "entropy_mean", "clip_frac",
    "epoch", "run_id", "phase",
]  # fmt: skip
PPO = {
    "eps": 2, "objective/kl": 6.5, "objective/entropy": 90.0, "objective/non_score_reward": -0.3, "objective/rlhf_reward": 1.2,
    "objective/scores": 1.5,
    "policy/approxkl_avg": 0.01, "policy/clipfrac_avg": 0.1, "policy/entropy_avg": 1.1, "loss/policy_avg": -0.1,
    "loss/value_avg": 0.4,
    "val/clipfrac_avg": 0.0, "val/ratio": 1.0, "val/ratio_var": 0.04, "val/num_eos_tokens": 3, "lr": 1e-6, "episode": 64,
    "epoch": 0.2,
}  # fmt: skip


def state(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "best_metric": None,
        "epoch": 1.0,
        "global_step": 3,
        "is_world_process_zero": True,
        "log_history": rows,
        "total_flos": 0.0,
    }


def write(path: Path, value: Any, **how: Any) -> TRLAdapter:
    path.write_text(json.dumps(value, **how))
    return TRLAdapter(path)


def lines(path: Path, rows: list[dict[str, Any]]) -> TRLAdapter:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return TRLAdapter(str(path))


def history(row: dict[str, Any], steps: int = 3) -> list[dict[str, Any]]:
    return [{**row, "step": step} for step in range(1, steps + 1)]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_trainer_state(indent: int | None, tmp_path: Path) -> None:
    rows = [*history(GRPO), {"train_runtime": 9.0, "train_loss": 0.1, "total_flos": 0.0, "step": 3, "epoch": 1.0}]
    adapter = write(tmp_path / "trainer_state.json", state(rows), indent=indent)
    assert adapter.can_handle() and "log_history" in adapter.why
    frame = adapter.load()
    assert list(frame) == GRPO_COLUMNS
    assert frame["step"].tolist() == [1, 2, 3] and frame["kl_mean"].tolist() == [0.001] * 3
    assert frame["run_id"].tolist() == [tmp_path.name] * 3 and frame["phase"].tolist() == ["train"] * 3
    assert frame["wall_time"].isna().all()


def test_a_bare_log_history(tmp_path: Path) -> None:
    adapter = write(tmp_path / "history.json", history(GRPO))
    assert adapter.can_handle() and list(adapter.load()) == GRPO_COLUMNS


def test_rows_as_json_lines(tmp_path: Path) -> None:
    adapter = lines(tmp_path / "mine.jsonl", history(GRPO))
    assert adapter.can_handle() and list(adapter.load()) == GRPO_COLUMNS
    assert adapter.load()["run_id"].unique().tolist() == ["mine"]


def test_the_rows_of_ppo(tmp_path: Path) -> None:
    (run,) = lines(tmp_path / "ppo.jsonl", history(PPO)).runs()
    assert run.framework == "trl_ppo" and run.coverage.unmapped == [] and run.kind == "rl"
    assert run.coverage.reductions["kl_mean"] == "sequence"
    names = ("kl_mean", "entropy_mean", "entropy_sequence", "ratio_std", "reward_mean")
    assert {name: run.columns[name].values[0] for name in names} == {
        "kl_mean": 6.5, "entropy_mean": 1.1, "entropy_sequence": 90.0, "ratio_std": 0.2, "reward_mean": 1.5,
    }  # fmt: skip


def test_an_event_log_of_the_contract(tmp_path: Path) -> None:
    event = {
        "step": 10,
        "wall_time": 100.5,
        "metrics": {"kl": 0.05, "grad_norm_policy": 1.0, "entropy": 0.9, "learning_rate": 0.001},
    }
    event |= {"model_info": {"run_id": "my_ppo_run", "phase": "train"}}
    adapter = lines(tmp_path / "r_events.jsonl", [event, {**event, "step": 11}])
    assert adapter.can_handle() and adapter.why == "an rldk event log"
    frame = adapter.load()
    assert list(frame) == ["step", "wall_time", "kl_mean", "policy_grad_norm", "entropy_mean", "lr", "run_id", "phase"]
    assert frame["run_id"].tolist() == ["my_ppo_run"] * 2


def test_held_out_rows_and_rows_without_rewards(tmp_path: Path) -> None:
    sparse = {key: GRPO[key] for key in ("loss", "grad_norm", "learning_rate", "epoch")}
    rows = [
        {**GRPO, "step": 1},
        {**sparse, "step": 2},
        {"eval_reward": 0.7, "eval_loss": 0.2, "eval_runtime": 1.0, "step": 2, "epoch": 0.2},
        {**GRPO, "step": 3},
    ]
    frame = write(tmp_path / "trainer_state.json", state(rows)).load()
    assert frame["step"].tolist() == [1, 2, 3]
    assert frame["reward_mean"].isna().tolist() == [False, True, False]
    assert frame["eval_reward_mean"].isna().tolist() == [True, False, True]
    assert frame["reward_mean"].iloc[0] == 0.5 and frame["eval_reward_mean"].iloc[1] == 0.7


def test_nan_and_null_are_told_apart(tmp_path: Path) -> None:
    rows = [{**GRPO, "step": 1, "grad_norm": math.nan}, {**GRPO, "step": 2, "reward": None}]
    (run,) = write(tmp_path / "trainer_state.json", state(rows)).runs()
    first, second = run.events()
    assert math.isnan(first.metrics["grad_norm"]) and first.nulls == ()
    assert "reward_mean" not in second.metrics and second.nulls == ("reward_mean",)


def test_plain_hugging_face_rows_are_read_and_said_to_be_supervised(tmp_path: Path) -> None:
    (run,) = lines(tmp_path / "sft.jsonl", history({"loss": 1.0, "grad_norm": 0.5, "learning_rate": 1e-5, "epoch": 0.1})).runs()
    assert run.kind == "supervised" and "no RL metrics: this is a log of supervised training" in run.notes


@pytest.mark.parametrize(
    "content",
    ["", "hello world\n", '{"actor/pg_loss": 1, "critic/score/mean": 2, "actor/entropy": 3, "training/global_step": 1}\n' * 2,
    "[]", "{}", "a,b\n1,2\n", "\x00\x01" * 99],
)  # fmt: skip
def test_what_is_no_trl_log_is_not_handled(content: str, tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(content)
    adapter = TRLAdapter(path)
    assert not adapter.can_handle() and adapter.why
    with pytest.raises(RLDKError):
        adapter.load()


def test_a_missing_file_and_a_wrong_field_map_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(RLDKError, match="does not exist"):
        TRLAdapter(tmp_path / "missing.jsonl")
    path = tmp_path / "x.jsonl"
    path.write_text("{}\n")
    with pytest.raises(UsageError, match="Did you mean kl_mean"):
        TRLAdapter(path, field_map={"my_kl": "kl_meen"})
    assert issubclass(MissingDependencyError, RLDKError)


def test_a_state_without_rows_says_so(tmp_path: Path) -> None:
    adapter = write(tmp_path / "trainer_state.json", state([]))
    assert adapter.can_handle()
    with pytest.raises(RLDKError, match="No row with a metric"):
        adapter.load()


def test_a_cut_off_state_says_so(tmp_path: Path) -> None:
    path = tmp_path / "trainer_state.json"
    path.write_text(json.dumps(state(history(GRPO)))[:-80])
    with pytest.raises(RLDKError, match="it may be cut off"):
        TRLAdapter(path).load()
