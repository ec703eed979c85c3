"""`--plan`: what it predicts beside the measured peak memory of small models, and what it counts."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.full
sys.path.insert(0, str(Path(__file__).parent))

from warm_processes import warm  # noqa: E402

ROOT = Path(__file__).parents[2]
TOLERANCE = 0.3  # as the plan says

# The peak above what the process had after its imports and its plan.
MEASURE = """
import contextlib, importlib, io, json, re, resource, sys
sys.path[:0] = [sys.argv[1]]
script = importlib.import_module(sys.argv[2])
with contextlib.redirect_stdout(io.StringIO()) as said:
    script.main([*sys.argv[3:], "--plan", "--json"])
before = int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
with contextlib.redirect_stdout(io.StringIO()):
    assert script.main(sys.argv[3:]) == 0
peak = int(re.search("VmHWM: *[^0-9]*([0-9]+)", open("/proc/self/status").read())[1]) * 1024 - before
print(json.dumps({"peak": peak, "plan": json.loads(said.getvalue())}))
"""


def config(folder: Path, **shape: int) -> Path:
    given = {"max_position_embeddings": 512, "num_attention_heads": 4, "num_key_value_heads": 4, **shape}
    path = folder / "model.json"
    path.write_text(json.dumps({"model_type": "llama", "tie_word_embeddings": True, **given}))
    return path


@pytest.mark.parametrize(
    ("stage", "shape", "flags"),
    [
        # weights, gradients and optimizer dominate
        ("pretrain", {"hidden_size": 384, "intermediate_size": 1536, "num_hidden_layers": 6}, "--batch_size 2 --max_seq_len 64"),
        # activations and logits do
        (
            "ppo",
            {"hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 4, "vocab_size": 8000},
            "--batch_size 48 --max_seq_len 24 --max_new_tokens 48 --eval_interval 0 --ppo_epochs 1",
        ),
    ],
)
def test_the_plan_is_near_the_measured_peak(small_world: Path, tmp_path: Path, stage: str, shape: dict, flags: str) -> None:
    words = f"--from_weight none --tokenizer dataset/tokenizer --max_steps 1 --no_rldk --num_threads 1 --save_interval 0 {flags}"
    given = [*words.split(), "--save_dir", str(tmp_path / "out"), "--model_config", str(config(tmp_path, **shape))]
    command = ["-c", MEASURE, str(ROOT / "trainer"), f"train_{stage}", *given]
    done = warm().run(command, cwd=small_world, env=os.environ)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert abs(found["peak"] / found["plan"]["total"] - 1.0) < TOLERANCE, found


def parts(tmp_path: Path, **changed: Any) -> dict[str, float]:
    from transformers import AutoConfig

    from memory_plan import plan

    given = {"stage": "full_sft", "weight_dtype": "float32", "dtype": "float32", "batch_size": 4, "max_seq_len": 100}
    given |= {"advantage": "gae", "reward": "rewards:helpful", "max_new_tokens": 50, "logprob_chunk": 64}
    given |= {"gradient_checkpointing": False, "lora_rank": 0, **changed}
    shape = json.loads(config(tmp_path, hidden_size=64, intermediate_size=128, num_hidden_layers=2, vocab_size=1000).read_text())
    return {part.name: part.size for part in plan(SimpleNamespace(**given), AutoConfig.for_model(**shape))}


def test_the_parts_are_those_of_the_table(tmp_path: Path) -> None:
    parameters = 1000 * 64 + 2 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 64
    sft = parts(tmp_path)
    assert sft["weights"] == sft["gradients"] == 4 * parameters
    assert sft["optimizer (two moments of AdamW)"] == 8 * parameters and "reference" not in sft
    assert sft["logits"] == 5 * 4 * 400 * 1000
    assert parts(tmp_path, weight_dtype="bfloat16")["gradients"] == 2 * parameters
    assert (
        parts(tmp_path, stage="dpo")["reference"] == 4 * parameters
        and parts(tmp_path, stage="dpo")["logits"] == 2 * sft["logits"]
    )
    ppo = parts(tmp_path, stage="ppo")
    assert ppo["weights"] == 8 * parameters and ppo["logits"] == 5 * 4 * 64 * 1000
    assert ppo["cache of keys and values in generation"] == 2 * 2 * 64 * 4 * 150 * 4
    assert parts(tmp_path, stage="ppo", advantage="grpo")["weights"] == 4 * parameters
    assert "reward model, taken as large as the policy" in parts(tmp_path, stage="ppo", reward="out/reward")
    adapters = 2 * (4 * (64 + 64) + 3 * (64 + 128))
    small = parts(tmp_path, stage="dpo", lora_rank=8)
    assert small["gradients"] == 8 * adapters * 4 and small["weights"] == 4 * parameters + small["gradients"]
    assert "reference" not in small
    assert parts(tmp_path, gradient_checkpointing=True)["activations"] < 0.7 * sft["activations"]


def test_sharding_divides_what_is_trained_and_ppo_does_not_shard(small_world: Path, monkeypatch: Any, capsys: Any) -> None:
    import train_full_sft
    import train_ppo

    monkeypatch.chdir(small_world)
    flags = [
        "--from_weight",
        "none",
        "--tokenizer",
        "dataset/tokenizer",
        "--model_config",
        "config/model/tiny.yaml",
        "--json",
        "--plan",
    ]
    found = {}
    for script in (train_full_sft, train_ppo):
        for devices in ("1", "8"):
            assert script.main([*flags, devices]) == 0
            found[script.__name__, devices] = json.loads(capsys.readouterr().out)
    one, eight = (found["train_full_sft", devices]["bytes"] for devices in ("1", "8"))
    assert eight["gradients"] == one["gradients"] / 8 and eight["activations"] == one["activations"]
    assert found["train_ppo", "1"]["total"] == found["train_ppo", "8"]["total"]
    assert train_ppo.main([*flags[:-2], "--plan", "8"]) == 0
    assert "PPO does not shard" in capsys.readouterr().out
