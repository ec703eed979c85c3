"""SFT and DPO with their weights divided among two processes: the same run as by one, with checkpoints of the parts."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from ppo_world import events_of  # noqa: E402
from stage_world import build_stages, by_two, weights, words  # noqa: E402


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_stages(tmp_path_factory.mktemp("world"))


def train_like_one_process(stage: str, world: Path, sharded: Path, alone: Path) -> None:
    import importlib

    assert importlib.import_module(f"train_{stage}").main(words(stage, world, alone)) == 0
    one, two = (events_of(out, stage) for out in (alone, sharded))
    assert [event["step"] for event in two] == list(range(1, 7))
    for first, second in zip(one, two, strict=True):
        for key in ("loss", "grad_norm", "eval_loss")[: 3 if "eval_loss" in first["metrics"] else 2]:
            assert first["metrics"][key] == pytest.approx(second["metrics"][key], rel=1e-3), key
    assert "eval_loss" in two[2]["metrics"]
    first, second = weights(alone, stage), weights(sharded, stage)
    assert first.keys() == second.keys() and all(torch.allclose(first[key], second[key], atol=1e-4) for key in first)
    config = json.loads((sharded / stage / "config.json").read_text())
    assert config["architectures"] == ["LlamaForCausalLM"]


@pytest.fixture(scope="module")
def sft(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sft")
    by_two("full_sft", world, out)
    return out


def test_sft_by_two_processes_with_half_the_weights_each_is_the_run_of_one(world: Path, sft: Path, tmp_path: Path) -> None:
    train_like_one_process("full_sft", world, sft, tmp_path)


def test_dpo_by_two_processes_with_half_the_weights_each_is_the_run_of_one(world: Path, tmp_path: Path) -> None:
    by_two("dpo", world, tmp_path / "two")
    train_like_one_process("dpo", world, tmp_path / "two", tmp_path / "one")


def test_a_sharded_run_resumes_from_the_newest_whole_checkpoint_to_the_same_bits(world: Path, sft: Path, tmp_path: Path) -> None:
    import shutil

    from safetensors.torch import load_file

    out = tmp_path / "out"
    shutil.copytree(sft, out)
    newest = sorted((out / "checkpoints/full_sft").glob("step_*"))[-1]
    parts = sorted(newest.glob("*.safetensors"))
    assert newest.name == "step_00000006" and len(parts) == 2  # one file per process
    assert {path.suffix for path in newest.iterdir()} == {".safetensors", ".json"}  # nothing is pickled
    whole = sum(load_file(path)["model.model.embed_tokens.weight"].shape[0] for path in parts)
    assert whole == 32 and all("optimizer.state.model.norm.weight.exp_avg" in load_file(path) for path in parts)
    data = bytearray(parts[1].read_bytes())
    data[-5] ^= 255
    parts[1].write_bytes(bytes(data))
    shutil.rmtree(out / "full_sft")
    said = by_two("full_sft", world, out, "--from_resume")
    assert f"{parts[1].name} differs from its checksum" in said and "resumed after step 4" in said
    one, other = weights(sft, "full_sft"), weights(out, "full_sft")
    assert all(one[key].equal(other[key]) for key in one)


@pytest.fixture
def group(tmp_path: Path):
    """A process group of one, in this process."""
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    yield SimpleNamespace(device=torch.device("cpu"), num_processes=1, is_main_process=True)
    dist.destroy_process_group()


def test_a_sharded_checkpoint_that_cannot_be_written_leaves_nothing(group, world: Path, tmp_path: Path, monkeypatch) -> None:
    from transformers import AutoModelForCausalLM

    import sharding
    from checkpoint import CheckpointError, checkpoints, load_checkpoint

    monkeypatch.setattr(sharding, "gather_object", lambda found: found)
    model = sharding.shard(AutoModelForCausalLM.from_pretrained(str(world / "model")), group)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
    model(input_ids=torch.arange(6)[None], labels=torch.arange(6)[None]).loss.backward()
    optimizer.step()

    class Full(sharding.dcp.HuggingFaceStorageWriter):
        def write_data(self, *_):
            raise OSError("No space left on device")

    root = tmp_path / "run"
    with monkeypatch.context() as patched:
        patched.setattr(sharding.dcp, "HuggingFaceStorageWriter", Full)
        with pytest.raises(CheckpointError, match=r"step 3 cannot be written to .*No space left"):
            sharding.save_sharded(group, root, 3, model, optimizer, {}, keep=2)
    assert list(root.iterdir()) == []
    sharding.save_sharded(group, root, 4, model, optimizer, {"tokens": 7}, keep=2)
    (saved,) = checkpoints(root)
    with pytest.raises(CheckpointError, match="written by a sharded run"):
        load_checkpoint(saved, {}, {})

    before = {name: weight.full_tensor().clone() for name, weight in model.named_parameters()}
    fresh = sharding.shard(AutoModelForCausalLM.from_pretrained(str(world / "model")), group)
    again = torch.optim.AdamW(fresh.parameters(), lr=0.1, fused=True)
    assert sharding.load_sharded(saved, fresh, again)["tokens"] == 7
    assert all(weight.full_tensor().equal(before[name]) for name, weight in fresh.named_parameters())
    for one, other in zip(model.parameters(), fresh.parameters(), strict=True):
        assert again.state[other]["exp_avg"].full_tensor().equal(optimizer.state[one]["exp_avg"].full_tensor())


def test_ppo_is_refused_and_one_process_is_told_how_to_start(world: Path, tmp_path: Path, capsys) -> None:
    import train_full_sft
    import train_ppo

    with pytest.raises(SystemExit):
        train_ppo.main(["--fsdp"])
    assert "PPO does not shard: policy, reference and critic must fit on each device" in capsys.readouterr().err
    with pytest.raises(ValueError, match="torchrun --nproc_per_node N"):
        train_full_sft.main(words("full_sft", world, tmp_path, "--fsdp"))
