"""What a checkpoint may look like on disk: shards, adapters, torch files, and every way to be broken."""

from __future__ import annotations

import json
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.checkpoints import CheckpointHistory, CheckpointReport, compare_checkpoints, find_checkpoints
from rldk.checkpoints.checkpoint import Checkpoint
from rldk.checkpoints.report import layer_of
from rldk.core.errors import ReadError
from rldk.testing.checkpoints import moved, small_model, write_course, write_safetensors


def report_on(*paths: Path) -> CheckpointReport:
    """The report on the last of them."""
    with CheckpointHistory() as history:
        return [history.add(path) for path in paths][-1]


def write_shards(folder: Path, weights: dict[str, Any], count: int = 3) -> Path:
    names = list(weights)
    parts = {f"model-{n + 1:05}-of-{count:05}.safetensors": names[n::count] for n in range(count)}
    for file, own in parts.items():
        write_safetensors(folder / file, {name: weights[name] for name in own})
    index = {"metadata": {}, "weight_map": {name: file for file, own in parts.items() for name in own}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def test_shards_are_one_checkpoint(tmp_path: Path) -> None:
    before, after = small_model(), moved(small_model(), 0.01, 1)
    whole = report_on(
        write_safetensors(tmp_path / "a/model.safetensors", before).parent,
        write_safetensors(tmp_path / "b/model.safetensors", after).parent,
    )
    shards = report_on(write_shards(tmp_path / "c", before), write_shards(tmp_path / "d", after, 2))
    assert shards.update_ratio == pytest.approx(whole.update_ratio)
    assert {tensor.name for tensor in shards.tensors} == set(before) and shards.problems == []


def test_a_missing_shard_is_said_and_its_layers_are_not_called_removed(tmp_path: Path) -> None:
    before, after = write_shards(tmp_path / "a-1", small_model()), write_shards(tmp_path / "a-2", moved(small_model(), 0.01, 1))
    (after / "model-00002-of-00003.safetensors").unlink()
    report = report_on(before, after)
    assert [problem.type for problem in report.problems] == ["damaged_checkpoint"] and report.verdict == "critical"
    assert "model-00002-of-00003.safetensors is missing" in report.problems[0].message
    assert len(report.problems[0].names) == 3 and report.removed == ()
    assert report.health_parts["whole"] == pytest.approx(0.7) and report.update_ratio > 0


def test_a_shard_that_lacks_what_the_index_promises(tmp_path: Path) -> None:
    folder = write_shards(tmp_path / "a", small_model())
    write_safetensors(folder / "model-00001-of-00003.safetensors", {"model.embed_tokens.weight": np.ones(3, np.float32)})
    report = report_on(folder)
    assert "lacks tensors that the index promises: 3, model.layers.0.input_layernorm.weight among" in report.problems[0].message


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ("{", "is not an index of shards"),
        ('{"weight_map": {}}', "names no shards"),
        ('{"weight_map": {"w": "../../etc/passwd"}}', "names a shard outside of its folder: '../../etc/passwd'"),
        ("[]", "is not an index of shards"),
        ('{"weight_map": ' + "[" * 100_000, "is not an index of shards"),
    ],
)
def test_an_index_that_is_none(tmp_path: Path, index: str, said: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(index)
    with pytest.raises(ReadError, match=said):
        Checkpoint(tmp_path)


def test_an_adapter(tmp_path: Path) -> None:
    prefix = "base_model.model.model.layers.0.self_attn.q_proj"
    draw = np.random.default_rng(0)
    for n in (1, 2, 3):
        down = draw.normal(size=(4, 40)).astype(np.float32)
        up = np.zeros((40, 4), np.float32) if n == 1 else draw.normal(size=(40, 4)).astype(np.float32)
        weights = {f"{prefix}.lora_A.weight": down, f"{prefix}.lora_B.weight": up}
        write_safetensors(tmp_path / f"checkpoint-{n}/adapter_model.safetensors", weights)
        (tmp_path / f"checkpoint-{n}/adapter_config.json").write_text('{"r": 4, "peft_type": "LORA"}')
    with CheckpointHistory() as history:
        reports = [history.add(found.path, found.step) for found in find_checkpoints(tmp_path)]
    assert [report.kind for report in reports] == ["adapter"] * 3 and [report.verdict for report in reports] == ["healthy"] * 3
    assert "Only an adapter of rank 4 is in the checkpoint; the weights it is added to are not." in reports[0].notes
    assert [layer.name for layer in reports[2].layers] == ["model.layers.0"]
    assert np.isnan(reports[1].tensors[1].previous_norm) or reports[1].tensors[1].previous_norm == 0.0


def test_models_side_by_side_are_told_apart_and_optimizers_are_no_weights(tmp_path: Path) -> None:
    for step in (1, 2):
        folder = tmp_path / f"step_0000000{step}"
        for n, name in enumerate(("actor", "critic")):
            write_safetensors(folder / f"{name}.safetensors", {"w": np.full(4, step + n, np.float32)})
            write_safetensors(folder / f"{name}_optimizer.safetensors", {"0.exp_avg": np.ones(9, np.float32)})
    write_safetensors(tmp_path / ".step_00000003.tmp/actor.safetensors", {"w": np.ones(4, np.float32)})
    found = find_checkpoints(tmp_path)
    assert [one.step for one in found] == [1, 2]
    report = report_on(*(one.path for one in found))
    assert {tensor.name: tensor.norm for tensor in report.tensors} == {"actor.w": 4.0, "critic.w": 6.0}
    assert {tensor.name: tensor.update for tensor in report.tensors} == {"actor.w": 2.0, "critic.w": 2.0}
    assert [problem.type for problem in report.problems] == ["weights_torn"]  # from 1 to 2 in one step


def test_shards_without_an_index_are_one_model(tmp_path: Path) -> None:
    folder = write_shards(tmp_path, small_model())
    (folder / "model.safetensors.index.json").unlink()
    assert {tensor.name for tensor in report_on(folder).tensors} == set(small_model())


def test_wrappers_around_a_model_make_no_other_model(tmp_path: Path) -> None:
    weights = small_model()
    plain = write_safetensors(tmp_path / "a.safetensors", weights)
    wrapped = write_safetensors(tmp_path / "b.safetensors", {f"module._orig_mod.{n}": w for n, w in weights.items()})
    report = compare_checkpoints(plain, wrapped)
    assert (report.update_ratio, report.added, report.removed) == (0.0, (), ())


def test_whole_numbers_are_not_measured_and_that_is_said(tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "a.safetensors", {"w": np.ones(3, np.float32), "q": np.ones(9, np.uint8)})
    report = report_on(path)
    assert report.parameters == 3 and any("1 of the tensors (U8)" in note for note in report.notes)


def test_what_is_not_in_a_checkpoint_of_ppo_is_said(tmp_path: Path) -> None:
    (folder,) = write_course(tmp_path, 1)
    (folder / "trainer_state.json").write_text(json.dumps({"log_history": [{"objective/kl": 0.1, "step": 1}]}))
    notes = report_on(folder).notes
    assert any("The value model is not in the checkpoint: TRL's PPO saves the policy only" in note for note in notes)
    assert any("state of the optimizer is not in the checkpoint" in note for note in notes)
    (folder / "optimizer.pt").write_bytes(b"")
    write_safetensors(folder / "model.safetensors", {**small_model(), "value_model.score.weight": np.ones(4, np.float32)})
    assert report_on(folder).notes == []


def test_the_optimizer_of_deepspeed_is_found_in_its_folder(tmp_path: Path) -> None:
    (folder,) = write_course(tmp_path, 1)
    (folder / "trainer_state.json").write_text("{}")
    (folder / "global_step500").mkdir()
    assert len(report_on(folder).notes) == 1
    (folder / "global_step500" / "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt").touch()
    assert report_on(folder).notes == []


@pytest.mark.parametrize("text", ["", "[1]", '{"log_history": [1, null]}', '{"log_history": {}}', "\xff"])
def test_a_trainer_state_that_makes_no_sense_is_passed_over(tmp_path: Path, text: str) -> None:
    (folder,) = write_course(tmp_path, 1)
    (folder / "trainer_state.json").write_text(text, encoding="latin-1")
    assert report_on(folder).verdict == "healthy"


def test_every_cut_of_a_file_is_told(tmp_path: Path) -> None:
    whole = write_safetensors(tmp_path / "a.safetensors", {"w": np.ones(8, np.float32)}).read_bytes()
    for size in range(len(whole)):
        (tmp_path / "b.safetensors").write_bytes(whole[:size])
        with pytest.raises(ReadError, match=r"is cut off|is not a safetensors file"):
            Checkpoint(tmp_path / "b.safetensors")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_broken_header_is_a_sentence(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("broken")
    whole = bytearray(write_safetensors(folder / "a.safetensors", {"w": np.ones(8, np.float32)}).read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(whole) - 33), min_size=1, max_size=4)):
        whole[place] = data.draw(st.integers(0, 255))
    (folder / "b.safetensors").write_bytes(whole)
    report = report_on(folder / "b.safetensors")
    assert report.kind == "unreadable" or report.tensors is not None


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [4], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": [4], "data_offsets": [-16, 0]},
        {"dtype": "F32", "shape": "x", "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": [4.0], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": [4]},
        [],
    ],
)
def test_entries_that_do_not_add_up(tmp_path: Path, entry: Any) -> None:
    header = json.dumps({"w": entry}).encode()
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(16))
    with pytest.raises(ReadError, match="has no valid safetensors header"):
        Checkpoint(tmp_path / "a.safetensors")


def test_a_type_of_tomorrow_is_named_and_not_measured(tmp_path: Path) -> None:
    header = json.dumps({"w": {"dtype": "F3_NEW", "shape": [4], "data_offsets": [0, 2]}}).encode()
    (tmp_path / "a.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(2))
    assert any("(F3_NEW)" in note for note in report_on(tmp_path / "a.safetensors").notes)


def test_folders_without_weights(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="holds no checkpoints"):
        find_checkpoints(tmp_path)
    with pytest.raises(ReadError, match="does not exist"):
        find_checkpoints(tmp_path / "nowhere")
    (tmp_path / "checkpoint-1").mkdir()
    (tmp_path / "checkpoint-1/__0_0.distcp").touch()
    report = report_on(tmp_path / "checkpoint-1")
    assert "holds FSDP shards" in report.problems[0].message and "merge" in report.problems[0].message


def test_where_checkpoints_are_found(tmp_path: Path) -> None:
    weights = {"w": np.ones(3, np.float32)}
    for step in (9, 100, 20):
        write_safetensors(tmp_path / f"hf/checkpoint-{step}/model.safetensors", weights)
        write_safetensors(tmp_path / f"verl/global_step_{step}/actor/huggingface/model.safetensors", weights)
        write_safetensors(tmp_path / f"files/policy_{step}.safetensors", weights)
        (tmp_path / f"hf/checkpoint-{step}/optimizer.pt").touch()
    write_safetensors(tmp_path / "hf/model.safetensors", weights)
    (tmp_path / "hf/runs").mkdir()
    assert [found.step for found in find_checkpoints(tmp_path / "hf")] == [9, 20, 100, None]
    assert find_checkpoints(tmp_path / "hf")[-1].path == tmp_path / "hf"
    assert [found.step for found in find_checkpoints(tmp_path / "verl")] == [9, 20, 100]
    assert [found.path.name for found in find_checkpoints(tmp_path / "files")] == [
        "policy_9.safetensors", "policy_20.safetensors", "policy_100.safetensors",
    ]  # fmt: skip
    assert find_checkpoints(tmp_path / "hf/checkpoint-9") == [(tmp_path / "hf/checkpoint-9", 9)]


@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("model.layers.11.mlp.up_proj.weight", "model.layers.11"),
        ("transformer.h.3.attn.c_attn.bias", "transformer.h.3"),
        ("base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", "model.layers.0"),
        ("base_model.model.lm_head.lora_B.weight", "lm_head"),
        ("lm_head.weight", "lm_head"),
        ("model.norm.weight", "model.norm"),
        ("log_std", "log_std"),
    ],
)
def test_the_layer_of_a_tensor(name: str, layer: str) -> None:
    assert layer_of(name) == layer


@pytest.mark.full
@pytest.mark.parametrize("legacy", [False, True])
def test_files_of_torch(tmp_path: Path, legacy: bool) -> None:
    import torch

    before = {"a.weight": torch.randn(30, 20), "b.weight": torch.randn(200).bfloat16(), "n": torch.ones(3, dtype=torch.int64)}
    after = {name: value + 0.125 if value.is_floating_point() else value for name, value in before.items()}
    for n, weights in enumerate((before, after, {"model": after, "step": 3})):
        (tmp_path / f"checkpoint-{n}").mkdir()
        torch.save(weights, tmp_path / f"checkpoint-{n}/pytorch_model.bin", _use_new_zipfile_serialization=not legacy)
    nested = report_on(tmp_path / "checkpoint-2")
    assert [tensor.name for tensor in nested.tensors] == ["model.a.weight", "model.b.weight"] and nested.parameters == 800
    report = report_on(tmp_path / "checkpoint-0", tmp_path / "checkpoint-1")
    for tensor in report.tensors:
        away = (after[tensor.name].double() - before[tensor.name].double()).norm()
        assert tensor.update == pytest.approx(float(away), rel=1e-4)


@pytest.mark.full
@pytest.mark.parametrize("data", [b"", b"\x80\x02.", b"\x80\x02a.", b"\x80\x02]u.", b"\x80"])
def test_a_damaged_file_of_torch_is_named(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.bin").write_bytes(data)
    with pytest.raises(ReadError, match=r"a\.bin (cannot be read as a torch file: .+\.|holds more than tensors)"):
        Checkpoint(tmp_path / "a.bin")


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs the list of memory maps")
def test_a_file_of_torch_that_is_cut_off_later_does_not_end_the_process(tmp_path: Path) -> None:
    import torch

    path = tmp_path / "a.bin"
    torch.save({"w": torch.ones(100_000)}, path)
    checkpoint = Checkpoint(path)
    assert str(path) not in Path("/proc/self/maps").read_text(), "a read beyond the end of a map is SIGBUS"
    os.truncate(path, 0)
    into = np.zeros(400_000, np.uint8)
    checkpoint.read("w", 0, into)
    assert into.view(np.float32).tolist() == [1.0] * 100_000


@pytest.mark.full
def test_a_file_of_torch_that_would_run_code_is_refused(tmp_path: Path) -> None:
    import torch

    class Evil:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "was_here",))

    torch.save({"w": Evil()}, tmp_path / "a.bin")
    (tmp_path / "b.bin").write_bytes(pickle.dumps(Evil()))
    (tmp_path / "c.bin").write_bytes(b"nonsense")
    for name in "abc":
        with pytest.raises(ReadError, match=r"It is not read|cannot be read as a torch file"):
            Checkpoint(tmp_path / f"{name}.bin")
    assert not (tmp_path / "was_here").exists()


@pytest.mark.full
def test_a_model_that_transformers_saved_in_shards(tmp_path: Path) -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.set_num_threads(1)
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2
    )
    model = LlamaForCausalLM(config).bfloat16()
    model.save_pretrained(tmp_path / "checkpoint-1", max_shard_size="20KB")
    before = {name: value.detach().double() for name, value in model.named_parameters()}
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.25)
    model.save_pretrained(tmp_path / "checkpoint-2", max_shard_size="30KB")
    report = report_on(tmp_path / "checkpoint-1", tmp_path / "checkpoint-2")
    assert report.parameters == sum(parameter.numel() for parameter in model.parameters()) and report.problems == []
    away = sum(float((value.detach().double() - before[name]).norm()) ** 2 for name, value in model.named_parameters())
    norm = sum(float(value.norm()) ** 2 for value in before.values())
    assert report.update_ratio == pytest.approx((away / norm) ** 0.5, rel=1e-4)
