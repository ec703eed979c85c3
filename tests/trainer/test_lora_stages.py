"""Adapters in SFT and DPO: by one process, resumed, and with the weights below them divided among two processes."""

from __future__ import annotations

import importlib
import importlib.util
import math
import shutil
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
absent = importlib.util.find_spec("peft") is None  # its import takes 3 s, and is for the process that runs these tests
pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore"), pytest.mark.skipif(absent, reason="peft is not installed")]
sys.path.insert(0, str(Path(__file__).parent))

from ppo_world import events_of, same  # noqa: E402
from stage_world import build_stages, by_two, weights, words  # noqa: E402

ADAPTERS = ("--lora_rank=2", "--learning_rate=2e-2")
STAGES = pytest.mark.parametrize("stage", ["full_sft", "dpo"])


def run(stage: str, world: Path, out: Path, *more: str) -> None:
    assert importlib.import_module(f"train_{stage}").main(words(stage, world, out, *ADAPTERS, *more)) == 0


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_stages(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def alone(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both stages by one process."""
    out = tmp_path_factory.mktemp("alone")
    for stage in ("full_sft", "dpo"):
        run(stage, world, out)
    return out


@STAGES
def test_a_stage_trains_adapters_alone_and_writes_them_merged(stage: str, world: Path, alone: Path) -> None:
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM

    found = [event["metrics"] for event in events_of(alone, stage)]
    assert found[-1]["loss"] < found[0]["loss"] - 0.01
    saved = load_file(alone / f"checkpoints/{stage}/step_00000006/model.safetensors")
    assert saved and all(".lora_" in name for name in saved)
    start, merged = load_file(world / "model/model.safetensors"), weights(alone, stage)
    moved = {name for name in start if not merged[name].equal(start[name])}
    assert merged.keys() == start.keys() and moved and all("proj" in name for name in moved)
    AutoModelForCausalLM.from_pretrained(str(alone / stage))
    assert (alone / stage / "adapter/adapter_model.safetensors").is_file()


def test_the_reference_of_dpo_is_the_model_without_its_adapters(alone: Path) -> None:
    first, *_, last = (event["metrics"] for event in events_of(alone, "dpo"))
    assert first["loss"] == pytest.approx(math.log(2), abs=1e-5) and first["preference_margin"] == pytest.approx(0.0, abs=1e-5)
    assert last["preference_margin"] > 0.01


@STAGES
def test_a_resumed_stage_ends_with_the_same_adapters(stage: str, world: Path, alone: Path, tmp_path: Path) -> None:
    shutil.copytree(alone, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / f"checkpoints/{stage}/step_00000006")
    run(stage, world, tmp_path, "--from_resume")
    same(events_of(alone, stage), events_of(tmp_path, stage))
    one, other = weights(alone, stage), weights(tmp_path, stage)
    assert all(one[key].equal(other[key]) for key in one)


@STAGES
def test_two_processes_with_half_the_weights_each_train_the_same_adapters(
    stage: str, world: Path, alone: Path, tmp_path: Path
) -> None:
    out = tmp_path / "two"
    by_two(stage, world, out, *ADAPTERS)
    for one, two in zip(events_of(alone, stage), events_of(out, stage), strict=True):
        for key in ("loss", "grad_norm"):
            assert one["metrics"][key] == pytest.approx(two["metrics"][key], rel=1e-3), (one["step"], key)
    first, second = weights(alone, stage), weights(out, stage)
    assert first.keys() == second.keys() and all(torch.allclose(first[key], second[key], atol=1e-3) for key in first)
    if stage == "full_sft":
        shutil.rmtree(out / f"checkpoints/{stage}/step_00000006")
        assert "resumed after step 4" in by_two(stage, world, out, *ADAPTERS, "--from_resume")
        third = weights(out, stage)
        assert all(second[key].equal(third[key]) for key in second)
