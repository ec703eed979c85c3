"""A task for PPO that takes seconds: words are tokens, the even ones are good, and the model has some thousand weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

WORDS = 28


def even_words(prompts: list[str], responses: list[str]) -> list[float]:
    """Share of even words, and something for ending."""
    scores = []
    for response in responses:
        words = [int(word[1:]) for word in response.split()]
        scores.append(sum(word % 2 == 0 for word in words) / max(len(words), 1))
    return scores


def prompt_length(prompts: list[str], responses: list[str]) -> list[float]:
    """A reward that depends on the prompt alone."""
    return [float(len(prompt)) for prompt in prompts]


def build(folder: Path, seed: int = 0) -> Path:
    """Write model, tokenizer, prompts and data config."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.set_num_threads(1)
    vocabulary = {"[PAD]": 0, "[BOS]": 1, "[EOS]": 2, "[UNK]": 3} | {f"w{n}": n + 4 for n in range(WORDS)}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="[PAD]", bos_token="[BOS]", eos_token="[EOS]", unk_token="[UNK]"
    ).save_pretrained(str(folder / "model"))
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=WORDS + 4, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(str(folder / "model"))
    lines = [{"text": " ".join(f"w{m}" for m in [n % WORDS, n // WORDS, *range(n % 4)]), "source": "test"} for n in range(48)]
    (folder / "prompts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "ppo.yaml").write_text(
        f"stage: ppo\noutput: {folder / 'prepared.jsonl'}\nsources:\n  - {{name: test, path: {folder / 'prompts.jsonl'}}}\n"
    )
    return folder


def command(world: Path, out: Path, *more: str) -> list[str]:
    """The arguments of a short run."""
    words = [
        f"--data_config={world / 'ppo.yaml'}", f"--model_path={world / 'model'}", "--reward=ppo_world:even_words",
        f"--save_dir={out}", "--batch_size=8", "--max_new_tokens=8", "--learning_rate=3e-3", "--num_threads=1",
        "--max_seq_len=16", "--epochs=100", "--max_update_kl=0", "--ppo_epochs=2",
    ]  # fmt: skip
    return [*words, *more]


def events_of(out: Path, run_id: str = "ppo") -> list[dict]:
    return [json.loads(line) for line in (out / f"{run_id}_events.jsonl").read_text().splitlines()]


TIMES = ("time", "second", "eta", "memory", "cpu", "mfu")


def numbers(event: dict) -> dict[str, float]:
    """The metrics of an event that do not depend on the clock."""
    return {key: value for key, value in event["metrics"].items() if not any(word in key for word in TIMES)}


def same(first: list[dict], second: list[dict], rel: float = 0.0, skip: tuple[str, ...] = ()) -> None:
    """The two runs have the same steps, once each, with the same metrics."""
    assert [event["step"] for event in first] == [event["step"] for event in second]
    for one, other in zip(first, second, strict=True):
        kept = [{key: value for key, value in numbers(event).items() if key not in skip} for event in (one, other)]
        assert kept[0] == (pytest.approx(kept[1], rel=rel, abs=rel) if rel else kept[1]), f"step {one['step']}"
