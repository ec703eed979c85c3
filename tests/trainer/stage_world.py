"""Conversations and pairs for SFT and DPO on the model of ppo_world, with tied weights; runs by two processes that shard it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import torch
from ppo_world import build
from warm_processes import warm

TRAINER = Path(__file__).parents[2] / "trainer"
TEMPLATE = "{% for message in messages %}{{ message['content'] }} [EOS] {% endfor %}"


def build_stages(folder: Path) -> Path:
    """A model with tied weights, conversations and pairs."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    build(folder)
    tokenizer = AutoTokenizer.from_pretrained(str(folder / "model"))
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(str(folder / "model"))
    config = AutoModelForCausalLM.from_pretrained(str(folder / "model")).config
    config.tie_word_embeddings = True
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config).save_pretrained(str(folder / "model"))
    talks = [
        {"messages": [{"role": "user", "content": f"w{n % 28}"}, {"role": "assistant", "content": f"w{n % 9} w{n % 5}"}]}
        for n in range(48)
    ]
    pairs = [{"prompt": f"w{n % 28}", "chosen": f"w{n % 9} w1", "rejected": f"w{n % 7} w2"} for n in range(48)]
    for stage, rows in (("sft", talks), ("dpo", pairs)):
        (folder / f"{stage}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (folder / f"{stage}.yaml").write_text(
            f"stage: {stage}\noutput: {folder / stage}_mixed.jsonl\nsources:\n  - {{name: test, path: {folder / stage}.jsonl}}\n"
        )
    return folder


def words(stage: str, world: Path, out: Path, *more: str) -> list[str]:
    data = {"full_sft": "sft.yaml", "dpo": "dpo.yaml"}[stage]
    common = [f"--data_config={world / data}", f"--model_path={world / 'model'}", "--from_weight=none", f"--save_dir={out}"]
    common += ["--num_threads=1", "--max_seq_len=16", "--epochs=100", "--eval_interval=3", "--learning_rate=1e-3"]
    return [*common, "--batch_size=8", "--max_steps=6", "--save_interval=2", "--keep_checkpoints=5", *more]


def by_two(stage: str, world: Path, out: Path, *more: str) -> str:
    """A run by two processes; what they printed."""
    out.mkdir(parents=True, exist_ok=True)
    script = [str(TRAINER / f"train_{stage}.py"), *words(stage, world, out, "--fsdp", "--batch_size=4", *more)]
    first, second = warm().run_ranks(2, script, cwd=out, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert (first.returncode, second.returncode) == (0, 0), first.stderr[-6000:] + second.stderr[-6000:]
    return first.stdout + second.stdout


def weights(out: Path, stage: str) -> dict:
    from safetensors.torch import load_file

    return load_file(out / stage / "model.safetensors")
