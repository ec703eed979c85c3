"""Pretrain, midtrain, SFT and DPO: each learns, logs, stops and goes on as it should."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")]

sys.path.insert(0, str(Path(__file__).parent))

from warm_processes import warm  # noqa: E402

ROOT = Path(__file__).parents[2]
STAGES = ("pretrain", "midtrain", "full_sft", "dpo")
LINE = re.compile(r"Epoch:\[\d+/\d+\]\(\d+/\d+\) loss:\d+\.\d{6} .*grad_norm:\d+\.\d{4} .*tokens/s:\d+ .*epoch_Time:\d+min")
COMMON = {
    "loss", "grad_norm", "lr", "epoch", "global_step", "num_tokens", "tokens_per_second", "samples_per_second",
    "steps_per_second", "step_time", "eta_minutes", "epoch_time", "padding_frac",
}  # fmt: skip
OWN = {
    "dpo": {
        "chosen_reward_mean", "rejected_reward_mean", "preference_margin", "preference_accuracy", "chosen_logp_mean",
        "rejected_logp_mean",
    }
}  # fmt: skip


def script(stage: str) -> Any:
    import importlib

    return importlib.import_module(f"train_{stage}")


def run(stage: str, out: Path, *flags: str, steps: int = 8, batch: int = 8) -> int:
    import torch

    torch.set_num_threads(1)
    return script(stage).main(
        ["--save_dir", str(out), "--max_steps", str(steps), "--batch_size", str(batch), "--log_interval", "2", *flags]
    )


def events(out: Path, run_id: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / f"{run_id}_events.jsonl").read_text().splitlines()]


def weights(out: Path, name: str) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(out / name / "model.safetensors")


def same(one: dict[str, Any], other: dict[str, Any], within: float = 0.0) -> bool:
    return one.keys() == other.keys() and all((one[key] - other[key]).abs().max() <= within for key in one)


@pytest.fixture(autouse=True)
def here(small_world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(small_world)


@pytest.fixture(scope="module")
def chain(small_world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All four stages, each from the weights of the one before."""
    out = tmp_path_factory.mktemp("chain")
    before = Path.cwd()
    os.chdir(small_world)
    try:
        for stage in STAGES:
            rate = "5e-4" if stage == "dpo" else "1e-2"
            assert run(stage, out, "--eval_interval", "10", "--epochs", "2", "--learning_rate", rate, steps=20) == 0
    finally:
        os.chdir(before)
    return out


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_learns_from_the_weights_of_the_one_before(chain: Path, stage: str) -> None:
    found = [event["metrics"] for event in events(chain, stage)]
    assert [int(metrics["global_step"]) for metrics in found] == list(range(1, 21))
    assert found[-1]["loss"] < found[0]["loss"] * 0.95
    assert (found[-1]["eval_loss"], "eval_loss" in found[0]) == (pytest.approx(found[-1]["loss"], rel=0.5), False)
    if stage == "midtrain":  # begins where pretraining ended, and not at the loss of a new model
        assert found[0]["loss"] < math.log(400) - 0.5


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_logs_its_metrics_by_the_names_of_the_catalogue(chain: Path, stage: str) -> None:
    last = events(chain, stage)[-1]
    own = OWN.get(stage, {"perplexity", "token_accuracy", "entropy_mean"})
    assert last["metrics"].keys() >= COMMON | own
    assert "mfu" not in last["metrics"]  # the peak of a CPU is not known
    assert last["model_info"]["run_id"] == stage and last["rng"] == {"seed": 42} and last["data_slice"]["tokens_in"] > 0


@pytest.mark.parametrize("stage", STAGES)
def test_the_page_of_metrics_names_all_that_a_stage_logs(chain: Path, stage: str) -> None:
    page = (ROOT / "docs/training_metrics.md").read_text()
    part = page.split("## DPO")[1].split("## Reward")[0] if stage == "dpo" else page.split("## DPO")[0]
    for event in events(chain, stage):
        assert [name for name in event["metrics"] if f"`{name.removeprefix('eval_')}`" not in part] == []


def test_the_console_line_is_that_of_the_contract(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("pretrain", tmp_path, steps=4) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Epoch:")]
    assert len(lines) == 3 and LINE.fullmatch(lines[-1]), lines  # the first, every second, and the last


def test_the_log_of_a_whole_stage_is_judged_healthy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from rldk.cli.main import main

    assert run("pretrain", tmp_path, "--epochs", "20", "--learning_rate", "4e-3", steps=100) == 0
    capsys.readouterr()
    assert main(["scan", str(tmp_path / "pretrain_events.jsonl"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["runs"][0]
    assert (found["events"], found["verdict"], found["anomalies"]) == (100, "healthy", [])


def test_the_first_step_of_dpo_is_neutral(chain: Path) -> None:
    first = events(chain, "dpo")[0]["metrics"]
    assert first["loss"] == pytest.approx(math.log(2), abs=1e-5)
    assert first["preference_margin"] == pytest.approx(0.0, abs=1e-5)
    assert events(chain, "dpo")[-1]["metrics"]["preference_margin"] > 0.01


@pytest.mark.parametrize("stage", ["full_sft", "dpo"])
def test_one_batch_of_eight_and_eight_of_one_are_the_same_run(chain: Path, tmp_path: Path, stage: str) -> None:
    for name, batch, passes in (("whole", 8, 1), ("parts", 1, 8)):
        flags = ["--model_path", str(chain / "midtrain"), "--from_weight", "none", "--accumulation_steps", str(passes)]
        assert run(stage, tmp_path / name, *flags, steps=6, batch=batch) == 0
    whole, parts = ([event["metrics"] for event in events(tmp_path / name, stage)] for name in ("whole", "parts"))
    for one, other in zip(whole, parts, strict=True):
        for key in ("loss", "grad_norm", "lr", "num_tokens"):
            assert one[key] == pytest.approx(other[key], rel=2e-4), key
    assert same(weights(tmp_path / "whole", stage), weights(tmp_path / "parts", stage), within=1e-4)


@pytest.mark.parametrize("stage", ["pretrain", "dpo"])
def test_a_stopped_run_goes_on_as_if_it_had_not_been_stopped(
    chain: Path, tmp_path: Path, stage: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import stage_loop

    flags = ["--from_weight", "full_sft" if stage == "dpo" else "none", "--warmup_steps", "3", "--lr_schedule", "cosine"]
    for name in ("straight", "stopped"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "full_sft").symlink_to(chain / "full_sft")
    assert run(stage, tmp_path / "straight", *flags) == 0

    calls = []

    def told(self: Any, accelerator: Any, also: bool = False) -> bool:
        calls.append(1)
        self.signal = signal.SIGTERM if len(calls) == 3 else None
        return len(calls) == 3

    monkeypatch.setattr(stage_loop.Stopper, "requested", told)
    assert run(stage, tmp_path / "stopped", *flags) == 128 + signal.SIGTERM
    assert "stopped after step 3" in capsys.readouterr().out
    assert not (tmp_path / "stopped" / stage).exists()
    assert run(stage, tmp_path / "stopped", *flags, "--from_resume") == 0
    assert same(weights(tmp_path / "straight", stage), weights(tmp_path / "stopped", stage))
    one, other = (events(tmp_path / name, stage) for name in ("straight", "stopped"))
    assert [event["step"] for event in other] == list(range(1, 9))
    for key in ("loss", "grad_norm", "lr", "num_tokens"):
        assert [event["metrics"][key] for event in one] == [event["metrics"][key] for event in other], key


def command(stage: str, out: Path, *flags: str) -> list[str]:
    return [str(ROOT / f"trainer/train_{stage}.py"), "--save_dir", str(out), "--num_threads", "1", "--log_interval", "1", *flags]


def test_a_killed_run_goes_on_from_its_last_checkpoint(chain: Path, tmp_path: Path, small_world: Path) -> None:
    flags = ["--model_path", str(chain / "midtrain"), "--from_weight", "none", "--batch_size", "8"]
    steps = ["--save_interval", "4", "--max_steps", "300", "--epochs", "100"]
    process = warm().start(command("full_sft", tmp_path, *flags, *steps), small_world, os.environ, os.devnull, os.devnull)
    log = tmp_path / "full_sft_events.jsonl"
    limit = time.monotonic() + 90
    while not (log.exists() and log.read_bytes().count(b"\n") >= 10) and time.monotonic() < limit and process.poll() is None:
        time.sleep(0.05)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    reached = max(event["step"] for event in events(tmp_path, "full_sft"))
    found = sorted((tmp_path / "checkpoints/full_sft").glob("step_*"))
    at = int(found[-1].name[5:])
    assert reached >= 10 and reached - 4 <= at <= reached
    before = [event["metrics"]["loss"] for event in events(tmp_path, "full_sft")]
    assert run("full_sft", tmp_path, *flags[:4], "--epochs", "100", "--from_resume", steps=at + 3) == 0
    after = events(tmp_path, "full_sft")
    assert [event["step"] for event in after] == list(range(1, at + 4))
    assert [event["metrics"]["loss"] for event in after][:at] == before[:at]
    again = min(reached, at + 1)  # the first step that was made twice, once before the kill and once after it
    assert after[again - 1]["metrics"]["loss"] == pytest.approx(before[again - 1], rel=1e-6)


def test_two_processes_are_one_with_the_doubled_batch(chain: Path, tmp_path: Path, small_world: Path) -> None:
    flags = ["--model_path", str(chain / "midtrain"), "--from_weight", "none"]
    assert run("full_sft", tmp_path / "one", *flags, steps=6, batch=8) == 0
    script = command("full_sft", tmp_path / "two", *flags, "--max_steps", "6", "--batch_size", "4")
    ranks = warm().run_ranks(2, script, cwd=small_world, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert [done.returncode for done in ranks] == [0, 0], [done.stderr for done in ranks]
    assert [done.stdout.count("(6/") for done in ranks] == [1, 0]  # only one of them prints
    one, two = (events(tmp_path / name, "full_sft") for name in ("one", "two"))
    assert [event["step"] for event in two] == list(range(1, 7))
    for first, second in zip(one, two, strict=True):
        for key in ("loss", "grad_norm", "token_accuracy", "num_tokens"):
            assert first["metrics"][key] == pytest.approx(second["metrics"][key], rel=1e-3), key
    assert same(weights(tmp_path / "one", "full_sft"), weights(tmp_path / "two", "full_sft"), within=1e-3)


def test_a_step_with_gradients_that_are_not_finite_is_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from safetensors.torch import load_file

    flags = ["--inject", "nan_loss@4", "--save_interval", "1", "--keep_checkpoints", "9"]
    assert run("pretrain", tmp_path, *flags, steps=5) == 0
    assert "step 4: the gradients are not finite; the step was skipped" in capsys.readouterr().out
    found = events(tmp_path, "pretrain")
    assert (found[3]["notes"] and found[3]["metrics"]["loss"] is None) or math.isnan(float(found[3]["metrics"]["loss"]))
    second, third, fifth = (load_file(tmp_path / f"checkpoints/pretrain/step_{n:08d}/model.safetensors") for n in (2, 3, 5))
    assert same(third, fifth) and not same(second, third)


def test_on_nonfinite_stop_leaves_a_checkpoint_of_good_weights(tmp_path: Path) -> None:
    assert run("pretrain", tmp_path, "--inject", "nan_loss@3", "--on_nonfinite", "stop") == 1
    assert [path.name for path in (tmp_path / "checkpoints/pretrain").iterdir()] == ["step_00000003"]
    assert not (tmp_path / "pretrain").exists()


def test_a_learning_rate_that_explodes_is_stopped_by_the_monitor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--inject", "lr=3000@40", "--stop_on", "critical", "--epochs", "100", "--grad_clip", "0"]
    assert run("pretrain", tmp_path, *flags, steps=110) == 1
    stopped = int(re.search(r"stopped after step (\d+): the monitor", capsys.readouterr().out).group(1))
    assert 40 <= stopped < 110
    assert (tmp_path / f"checkpoints/pretrain/step_{stopped:08d}").is_dir()


def test_a_run_that_begins_anew_leaves_the_checkpoints_of_the_last_one_aside(tmp_path: Path) -> None:
    assert run("pretrain", tmp_path, steps=5) == 0
    assert run("pretrain", tmp_path, steps=3) == 0
    assert [path.name for path in (tmp_path / "checkpoints/pretrain").iterdir()] == ["step_00000003"]
    assert [path.name for path in (tmp_path / "checkpoints/pretrain_1").iterdir()] == ["step_00000005"]
    assert [event["step"] for event in events(tmp_path, "pretrain")] == [1, 2, 3]


def test_no_rldk_trains_the_same_weights_and_writes_no_log(tmp_path: Path) -> None:
    assert run("pretrain", tmp_path / "with", steps=4) == 0
    assert run("pretrain", tmp_path / "without", "--no_rldk", steps=4) == 0
    assert same(weights(tmp_path / "with", "pretrain"), weights(tmp_path / "without", "pretrain"))
    assert not list((tmp_path / "without").glob("*_events.jsonl"))


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--data_config", "config/data/posttrain/rlaif/ppo.yaml"], "is for the stage ppo; this one takes pretrain"),
        (["--inject", "flipped_reward"], "there is no fault 'flipped_reward'.*\n  lr"),
        (["--inject", "lr=much"], "both numbers"),
        (["--use_prepared"], "No prepared file dataset/pretrain_train.jsonl"),
        (["--max_seq_len", "9999999"], "do not fill one block"),
    ],
)
def test_what_a_user_can_mend_is_said(tmp_path: Path, flags: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        run("pretrain", tmp_path, *flags)


def test_held_out_samples_are_never_trained_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import stage_loop

    asked: list[list[int]] = []
    whole = stage_loop.collated
    monkeypatch.setattr(stage_loop, "collated", lambda data, places: asked.append(list(places)) or whole(data, places))
    assert run("pretrain", tmp_path, "--eval_interval", "10", "--epochs", "3", "--eval_samples", "6", steps=30) == 0
    held = [batch for batch in asked if len(batch) == 6]
    assert len(held) == 3 and held[0] == held[1] == held[2]
    trained = {place for batch in asked if batch not in held for place in batch}
    assert not trained & set(held[0]) and len(trained) > 100


def test_a_reward_model_learns_from_the_preferences_and_is_what_ppo_takes(chain: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForSequenceClassification

    from trainer_utils import load_reward

    flags = ["--model_path", str(chain / "full_sft"), "--from_weight", "none", "--epochs", "9", "--learning_rate", "3e-3"]
    assert run("reward", tmp_path, *flags, steps=40) == 0
    found = [event["metrics"] for event in events(tmp_path, "reward")]
    assert sum(metrics["preference_accuracy"] for metrics in found[-5:]) / 5 > 0.75
    assert load_reward(str(tmp_path / "reward")) == tmp_path / "reward"
    assert AutoModelForSequenceClassification.from_pretrained(str(tmp_path / "reward")).config.num_labels == 1


def test_a_stage_answers_held_out_questions_before_and_after(
    chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--model_path", str(chain / "midtrain"), "--from_weight", "none", "--eval_reward", "rewards:helpful"]
    assert run("full_sft", tmp_path, *flags, "--eval_new_tokens", "5", "--eval_generations", "2", steps=2) == 0
    out = capsys.readouterr().out
    for when in ("before", "after"):
        said = out[out.index(f"{when}: reward") :].splitlines()
        assert "over 36 held-out prompts" in said[0] and "pass@2" in said[0] and "  ->  " in said[1]
    found = events(tmp_path, "full_sft")
    assert [event["step"] for event in found if "eval_reward_mean" in event["metrics"]] == [0, found[-1]["step"]]
    assert all(sample["held_out"] for sample in found[-1]["samples"])


def test_models_are_evaluated_beside_each_other(chain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import evaluate
    from checkpoint import CheckpointError

    flags = ["--weights", str(chain / "full_sft"), str(chain / "dpo"), "--show", "2", "--max_new_tokens", "5"]
    assert evaluate.main(flags) == 0
    first = capsys.readouterr().out
    assert first.count("over 36 held-out prompts") == 2 and first.count("is better than") == 1
    assert evaluate.main(flags) == 0
    assert capsys.readouterr().out == first
    with pytest.raises(CheckpointError, match="there is no such folder"):
        evaluate.main(["--weights", str(chain / "nothing")])
