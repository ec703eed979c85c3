"""Adapters: what is trained, the reference with adapters off, merged weights, checkpoints; and moments of 8 bits."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
absent = importlib.util.find_spec("peft") is None  # its import takes 3 s, and is for the process that runs these tests
pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore"), pytest.mark.skipif(absent, reason="peft is not installed")]
sys.path.insert(0, str(Path(__file__).parent))

from ppo_world import build, command, events_of, same  # noqa: E402

TOKENS = torch.tensor([[5, 6, 7, 8, 9, 2], [7, 8, 9, 10, 11, 12]])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("world"))


def run(world: Path, out: Path, *words: str) -> str:
    import train_ppo

    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert train_ppo.main(command(world, out, "--max_steps=4", "--save_interval=2", *words)) == 0
    return said.getvalue()


def adapted(kind: str = "llama"):
    """A small model with adapters that have learnt something, and the same model before."""
    from transformers import AutoConfig, AutoModelForCausalLM

    from lora import add_adapters

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64} if kind == "gpt2" else sizes
    config = AutoConfig.for_model(kind, vocab_size=32, **sizes)
    before = AutoModelForCausalLM.from_config(config).eval()
    model = AutoModelForCausalLM.from_config(config).eval()
    model.load_state_dict(before.state_dict())
    add_adapters(SimpleNamespace(lora_rank=3, lora_alpha=None, lora_targets="all-linear"), model)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if ".lora_B." in name:
                weight.normal_(std=0.3)
    return model, before


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_off_they_are_the_model_before_and_merged_they_are_the_model_after(kind: str, tmp_path: Path) -> None:
    from peft import PeftModel

    from lora import adapters_off, merged_state, save_adapters

    model, before = adapted(kind)
    trained = [name for name, weight in model.named_parameters() if weight.requires_grad]
    assert trained and all(".lora_" in name for name in trained)
    on = model(input_ids=TOKENS).logits
    with adapters_off(model):
        assert torch.equal(model(input_ids=TOKENS).logits, before(input_ids=TOKENS).logits)
    assert [name for name, weight in model.named_parameters() if weight.requires_grad] == trained
    assert torch.equal(model(input_ids=TOKENS).logits, on) and not torch.allclose(on, before(input_ids=TOKENS).logits, atol=1e-2)
    save_adapters(model, model.state_dict(), tmp_path / "adapter")
    by_peft = PeftModel.from_pretrained(before, str(tmp_path / "adapter"))
    assert torch.allclose(by_peft(input_ids=TOKENS).logits, on, atol=1e-5)
    _, merged = adapted(kind)
    merged.load_state_dict(merged_state(model, model.state_dict()))
    assert torch.allclose(merged(input_ids=TOKENS).logits, on, atol=1e-5)


@pytest.mark.parametrize("advantage", ["gae", "grpo"])
def test_ppo_trains_adapters_from_a_reference_that_needs_no_copy(advantage: str, world: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM

    words = ["--lora_rank=2", f"--advantage={advantage}", "--num_generations=4", "--learning_rate=2e-2"]
    run(world, tmp_path, *words)
    found = [event["metrics"] for event in events_of(tmp_path)]
    assert abs(found[0]["kl_mean"]) < 1e-6 and abs(found[-1]["kl_mean"]) > 1e-4  # from the start, not from itself
    assert found[0]["reference_is_policy"] == 0.0
    start = load_file(world / "model/model.safetensors")
    assert found[0]["policy_trainable_params"] < sum(weight.numel() for weight in start.values()) / 4
    saved = load_file(tmp_path / "checkpoints/ppo/step_00000004/actor.safetensors")
    assert saved and all(".lora_" in name for name in saved)
    if advantage == "gae":
        critic = load_file(tmp_path / "checkpoints/ppo/step_00000004/critic.safetensors")
        assert {name for name in critic if ".lora_" not in name} == {"score.weight", "score.bias"}
    merged = load_file(tmp_path / "ppo/model.safetensors")
    assert merged.keys() == start.keys()
    moved = {name for name in start if not merged[name].equal(start[name])}
    assert moved and all("proj" in name for name in moved)  # embeddings, norms and head are as they were
    AutoModelForCausalLM.from_pretrained(str(tmp_path / "ppo"))
    assert json.loads((tmp_path / "ppo/adapter/adapter_config.json").read_text())["r"] == 2


def test_a_resumed_run_has_the_same_adapters_and_refuses_other_weights_below_them(world: Path, tmp_path: Path) -> None:
    import shutil

    import train_ppo
    from checkpoint import CheckpointError

    words = ["--lora_rank=2", "--learning_rate=2e-2"]
    run(world, tmp_path / "straight", *words)
    run(world, tmp_path / "stopped", *words)
    shutil.rmtree(tmp_path / "stopped/checkpoints/ppo/step_00000004")
    run(world, tmp_path / "stopped", *words, "--from_resume")
    same(events_of(tmp_path / "straight"), events_of(tmp_path / "stopped"))
    other = build(tmp_path / "other", seed=1)
    shutil.rmtree(world / "kept", ignore_errors=True)
    shutil.copytree(world / "model", world / "kept")
    try:
        shutil.copy(other / "model/model.safetensors", world / "model/model.safetensors")
        with pytest.raises(CheckpointError, match="the frozen weights differ"):
            train_ppo.main(command(world, tmp_path / "stopped", "--max_steps=6", *words, "--from_resume"))
    finally:
        shutil.copy(world / "kept/model.safetensors", world / "model/model.safetensors")


def test_the_call_of_the_8_bit_optimizer_is_that_of_its_package() -> None:
    """Its steps are run here on a CPU; on a GPU they have not been."""
    bitsandbytes = pytest.importorskip("bitsandbytes")
    from optimization import make_optimizer

    inspect.signature(bitsandbytes.optim.AdamW8bit.__init__).bind(None, [], lr=1e-3, betas=(0.9, 0.999))
    torch.manual_seed(0)
    model = torch.nn.Linear(96, 96)
    optimizer = make_optimizer(model, 1e-2, weight_decay=0.1, kind="adamw_8bit")
    assert isinstance(optimizer, bitsandbytes.optim.AdamW8bit)
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.1, 0.0]


def test_moments_of_8_bits_are_in_the_checkpoint_and_training_resumes_with_them(world: Path, tmp_path: Path) -> None:
    import shutil

    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoModelForCausalLM

    pytest.importorskip("bitsandbytes")
    wide = tmp_path / "wide"  # tensors of fewer than 4096 numbers keep moments of 32 bits
    config = AutoConfig.from_pretrained(str(world / "model"))
    config.hidden_size, config.intermediate_size = 128, 64
    shutil.copytree(world / "model", wide)
    AutoModelForCausalLM.from_config(config).save_pretrained(str(wide))
    words = ["--optimizer=adamw_8bit", f"--model_path={wide}", "--advantage=grpo", "--num_generations=4", "--learning_rate=1e-3"]
    run(world, tmp_path / "straight", *words)
    run(world, tmp_path / "stopped", *words)
    saved = load_file(tmp_path / "stopped/checkpoints/ppo/step_00000004/actor_optimizer.safetensors")
    assert {value.dtype for name, value in saved.items() if name.endswith(("state1", "state2"))} >= {torch.uint8}
    shutil.rmtree(tmp_path / "stopped/checkpoints/ppo/step_00000004")
    run(world, tmp_path / "stopped", *words, "--from_resume")
    same(events_of(tmp_path / "straight"), events_of(tmp_path / "stopped"))


@pytest.mark.parametrize(("flag", "package"), [("--lora_rank=2", "peft"), ("--optimizer=adamw_8bit", "bitsandbytes.optim")])
def test_a_package_that_is_missing_is_named(flag: str, package: str, world: Path, tmp_path: Path, monkeypatch) -> None:
    import train_ppo

    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ValueError, match=f"pip install {package.split('.')[0]}"):
        train_ppo.main(command(world, tmp_path, "--max_steps=1", flag))
