"""What the examples train: a Llama of two layers, a tokenizer of twenty words, and prompts, all made here."""

from __future__ import annotations

import gc
import os
import tempfile
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

GOOD = ("kind", "calm", "warm", "bright")
WORDS = (*GOOD, "cold", "dark", "loud", "rude", "the", "day", "night", "is", "was", "a", "very", "and", "not", "so", "one", "two")


def make_model(folder: str | Path | None = None) -> str:
    """Save a fresh model and its tokenizer to a folder, as if it had been downloaded; returns the folder."""
    folder = str(folder or tempfile.mkdtemp(prefix="rldk-example-"))
    words = {word: number for number, word in enumerate(("<pad>", "<eos>", "<unk>", *WORDS))}
    inner = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
    )
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(words), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=4, max_position_embeddings=128, pad_token_id=0, eos_token_id=1, bos_token_id=1,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_prompts(count: int = 128) -> Dataset:
    """Prompts of six words."""
    chooser = torch.Generator().manual_seed(0)
    rows = torch.randint(len(WORDS), (count, 6), generator=chooser).tolist()
    return Dataset.from_dict({"prompt": [" ".join(WORDS[number] for number in row) for row in rows]})


def good_words(completions: list[str], **_: object) -> list[float]:
    """A reward by rule, for GRPO: the share of good words."""
    return [sum(word in GOOD for word in text.split()) / max(1, len(text.split())) for text in completions]


def ppo_config(output_dir: str, updates: int = 12, **options: object) -> object:
    """A configuration of TRL's PPO that fits the tiny world and a CPU."""
    from rldk.integrations.trl.ppo_trainer import find_ppo

    given = {
        "output_dir": output_dir, "report_to": "none", "per_device_train_batch_size": 16, "gradient_accumulation_steps": 1,
        "total_episodes": 16 * updates, "num_ppo_epochs": 4, "num_mini_batches": 1, "response_length": 12, "learning_rate": 1e-3,
        "kl_coef": 0.05, "num_sample_generations": 0, "use_cpu": True, "bf16": False, "gradient_checkpointing": False,
        "disable_tqdm": True, "save_strategy": "no", "stop_token": "eos",
    }  # fmt: skip
    return find_ppo()[1](**{**given, **options})


def settle() -> None:
    """TRL's PPO collects garbage twice per update; objects from before training need not be scanned each time (4x faster)."""
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()
