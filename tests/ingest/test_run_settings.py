"""What a run was started with, from its log and from the files beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rldk.ingest import read_runs
from rldk.ingest.run_settings import printed_settings, settings_beside
from rldk.runs.run import Run

RUN_CONFIG = {"learning_rate": 1e-6, "beta": 0.1, "arguments": "GRPOConfig", "nested": {"list": [1, 2]}}
TOLD = {"limits": {"kl_mean": {"max": 0.2}}, "kl_target": 6.0, "per": {"kl_mean": "sequence"}}


def event(step: int, run_id: str = "a", **info: Any) -> str:
    return json.dumps({
        "step": step, "wall_time": 100.0 + step, "metrics": {"reward_mean": 0.1 * step, "kl_mean": 0.1},
        "model_info": {"run_id": run_id, "phase": "train", **info},
    })  # fmt: skip


def runs_of(path: Path, *lines: str) -> list[Run]:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines))
    return read_runs(path).runs


def test_the_first_event_of_a_log_says_what_the_run_was_started_with(tmp_path: Path) -> None:
    lines = [event(1, config={**RUN_CONFIG, "rldk": TOLD}), *(event(step) for step in range(2, 3000))]
    (run,) = runs_of(tmp_path / "a_events.jsonl", *lines)
    assert (run.config["learning_rate"], run.config["kl_coef"], run.config.key_of("kl_coef")) == (1e-6, 0.1, "beta")
    assert run.config.rldk == TOLD and run.config.raw["nested"] == {"list": [1, 2]}
    assert run.config.source == "the event log"
    assert len(run) == 2999 and set(run.columns) == {"reward_mean", "kl_mean"}  # the settings are no columns
    assert run.coverage.unmapped == []


def test_a_run_read_from_a_log_says_it_again_in_its_first_event_and_only_there(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path / "a_events.jsonl", event(1, config={**RUN_CONFIG, "rldk": TOLD}), event(2), event(3))
    first, *rest = run.events()
    assert first.model_info["config"] == {**RUN_CONFIG, "rldk": TOLD}
    assert not any("config" in other.model_info for other in rest)


def test_each_run_of_a_log_has_its_own_and_a_resumed_one_that_of_its_last_start(tmp_path: Path) -> None:
    lines = [
        event(1, "a", config={"beta": 0.1}), event(2, "a"), event(3, "a", config={"beta": 0.3}), event(4, "a"),
        event(1, "b", config={"beta": 0.2}), event(2, "b"), event(1, "c"), event(2, "c"),
    ]  # fmt: skip
    runs = {run.run_id: run for run in runs_of(tmp_path / "log.jsonl", *lines)}
    assert [runs[name].config.get("kl_coef") for name in "abc"] == [0.3, 0.2, None]


def test_settings_that_are_none_are_let_be(tmp_path: Path) -> None:
    for number, odd in enumerate(("configs/a.yaml", None, [1, 2], 3, {})):
        (run,) = runs_of(tmp_path / f"{number}.jsonl", event(1, config=odd), event(2), event(3))
        assert not run.config and set(run.columns) == {"reward_mean", "kl_mean"}


def test_the_state_of_a_trainer_and_what_lies_beside_it(tmp_path: Path) -> None:
    history = [{"step": step, "loss": 1.0, "learning_rate": 1e-5, "grad_norm": 1.0, "epoch": 0.1} for step in range(1, 6)]
    state = {"max_steps": 50, "num_train_epochs": 3, "train_batch_size": 8, "logging_steps": 10, "log_history": history}
    (tmp_path / "trainer_state.json").write_text(json.dumps(state))
    (run,) = read_runs(tmp_path / "trainer_state.json").runs
    assert dict(run.config) == {"max_steps": 50, "num_epochs": 3, "batch_size": 8, "logging_steps": 10}
    model = {"architectures": ["LlamaForCausalLM"], "hidden_size": 8, "vocab_size": 99, "_name_or_path": "tiny", "temperature": 5}
    (tmp_path / "config.json").write_text(json.dumps(model))
    (tmp_path / "training_args.json").write_text(
        json.dumps({"beta": 0.04, "max_steps": 7, "hub_token": "hf_abcdefghijklmnopqrst"})
    )
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 12, "seed": 3}))
    (run,) = read_runs(tmp_path / "trainer_state.json").runs
    assert run.config["max_steps"] == 50 and run.config["kl_coef"] == 0.04  # what the log says goes first
    assert (run.config["model"], run.config["vocab_size"]) == ("tiny", 99) and "temperature" not in run.config
    assert "seed" not in run.config and "hf_" not in json.dumps(run.config.to_dict())


def test_a_document_with_rows_may_hold_its_settings(tmp_path: Path) -> None:
    rows = [{"step": step, "loss": 1.0, "reward": 0.1 * step} for step in range(1, 5)]
    (tmp_path / "run.json").write_text(json.dumps({"config": {"lr": 0.001, "kl_coef": 0.2}, "history": rows}))
    (run,) = read_runs(tmp_path / "run.json").runs
    assert dict(run.config) == {"learning_rate": 0.001, "kl_coef": 0.2}


def test_a_file_of_settings_counts_where_it_can_be_of_no_other_log(tmp_path: Path) -> None:
    line = '{"step": 1, "loss": 1.0, "reward": 1}'
    (tmp_path / "config.yaml").write_text("actor:\n  lr: 0.5\n")
    (run,) = runs_of(tmp_path / "first.jsonl", line)
    assert run.config["learning_rate"] == 0.5 and run.config.source == "config.yaml"
    runs_of(tmp_path / "second.jsonl", line)
    (run,) = runs_of(tmp_path / "first.jsonl", line)
    assert not run.config  # of which of the two?
    (tmp_path / "second_config.json").write_text('{"lr": 0.25}')
    assert settings_beside(tmp_path / "second.jsonl")["learning_rate"] == 0.25
    assert not settings_beside(tmp_path / "first.jsonl")


@pytest.mark.parametrize(
    "text", ["", "{", "[1, 2]", "a: [", "\x00", "!!python/object:os.system {}", "&a [*a]", "x: " + "[" * 5000]
)
def test_a_file_that_holds_no_settings_does_no_harm(text: str, tmp_path: Path) -> None:
    for name in ("config.json", "args.yaml"):
        (tmp_path / name).write_text(text)
    (run,) = runs_of(tmp_path / "first.jsonl", '{"step": 1, "loss": 1.0, "reward": 1}')
    assert not run.config


def test_settings_that_a_tracker_was_given_as_text() -> None:
    assert printed_settings('{"beta": 0.1}') == {"beta": 0.1}
    assert printed_settings("|param|value|\n|-|-|\n|learning_rate|0.01|\n|env|a b|\n") == {"learning_rate": "0.01", "env": "a b"}
    assert printed_settings("so it goes") == {}
