"""A world small enough to train in seconds: a tokenizer, a Llama of one layer, prompts, and rewards by rule.

Everything is made here from a seed; nothing is downloaded. It needs only torch, transformers, datasets and TRL, of any
version that rldk supports.
"""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("WANDB_MODE", "offline")

import numpy as np
import torch
from torch import nn

GOOD = ("kind", "calm", "warm", "bright")
WORDS = (*GOOD, "cold", "dark", "loud", "rude", "the", "day", "night", "is", "was", "a", "very", "and", "not", "so", "one", "two")
PAD, EOS = "<pad>", "<eos>"
PROMPT = 6
"""Words of every prompt."""


def tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate((PAD, EOS, "<unk>", *WORDS))}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    made = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token=PAD, eos_token=EOS, unk_token="<unk>", padding_side="left",
        model_input_names=["input_ids", "attention_mask"],  # transformers 4 gives token_type_ids as well, which Llama refuses
    )  # fmt: skip
    made.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    return made


def config(hidden: int = 32, layers: int = 1) -> Any:
    from transformers import LlamaConfig

    return LlamaConfig(
        vocab_size=len(WORDS) + 3, hidden_size=hidden, intermediate_size=2 * hidden, num_hidden_layers=layers,
        num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=128, pad_token_id=0, eos_token_id=1, bos_token_id=1,
    )  # fmt: skip


class NoPadding(nn.Linear):
    """An output layer that never says the padding token: TRL's PPO takes what follows it for no response at all."""

    def forward(self, hidden: Any) -> Any:
        scores = super().forward(hidden)
        return scores.masked_fill(torch.arange(scores.shape[-1]) == 0, -1e4)


def policy(seed: int = 0, **size: int) -> Any:
    from transformers import LlamaForCausalLM

    torch.manual_seed(seed)
    made = LlamaForCausalLM(config(**size))
    made.lm_head.__class__ = NoPadding
    return made


def scorer(seed: int = 0, **size: int) -> Any:
    from transformers import LlamaForSequenceClassification

    torch.manual_seed(seed)
    made = config(**size)
    made.num_labels = 1
    return LlamaForSequenceClassification(made)


def saved(folder: Path, seed: int = 0) -> str:
    """The policy and its tokenizer in a folder, as a user has them; in a distributed run each process has its own copy."""
    folder = folder / os.environ.get("RANK", "")
    policy(seed).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return str(folder)


class RuleReward(nn.Module):
    """A reward model by rule, in the shape that TRL's PPO calls: `kind` is what it pays for.

    `good` pays for the share of good words after the prompt, `length` for every word, `constant` the same for all, and
    `nan` is `good` until its call number `onset`, and not a number after it.
    """

    base_model_prefix = "backbone"

    def __init__(self, kind: str = "good", onset: int = 0) -> None:
        super().__init__()
        self.kind, self.onset, self.calls = kind, onset, 0
        self.anchor = nn.Parameter(torch.zeros(1))
        self.score = nn.Identity()

    @property
    def backbone(self) -> Any:
        return self._backbone

    def _backbone(self, input_ids: Any = None, **_: Any) -> Any:
        self.calls += 1
        word = (input_ids > 1).float()
        good = ((input_ids >= 3) & (input_ids < 3 + len(GOOD))).float()
        word[:, :PROMPT], good[:, :PROMPT] = 0.0, 0.0
        share = good.cumsum(1) / word.cumsum(1).clamp(min=1.0)
        total = {"length": 0.1 * word.cumsum(1), "constant": 0.0 * share}.get(self.kind, share)
        if self.kind == "nan" and self.calls > self.onset:
            total = total * float("nan")
        hidden = total.unsqueeze(-1) * torch.ones(1, 1, 1) + 0.0 * self.anchor
        return type("Output", (), {"hidden_states": (hidden,)})()


def prompts(count: int = 256, seed: int = 0, tokenised: bool = True) -> Any:
    from datasets import Dataset

    chooser = torch.Generator().manual_seed(seed)
    texts = [" ".join(WORDS[int(i)] for i in torch.randint(len(WORDS), (PROMPT,), generator=chooser)) for _ in range(count)]
    if not tokenised:
        return Dataset.from_dict({"prompt": texts})
    return Dataset.from_dict({"input_ids": tokenizer()(texts)["input_ids"]})


def pairs(count: int = 64) -> Any:
    from datasets import Dataset

    texts = prompts(count, tokenised=False)["prompt"]
    chosen = [f" {GOOD[i % 4]} {GOOD[(i + 1) % 4]} day" for i in range(count)]
    return Dataset.from_dict({"prompt": list(texts), "chosen": chosen, "rejected": [" cold dark night"] * count})


def good_words(completions: list[Any], **_: Any) -> list[float]:
    """GRPO's reward by rule: the share of good words."""
    return [sum(word in GOOD for word in str(text).split()) / max(1, len(str(text).split())) for text in completions]


def settle() -> None:
    """TRL collects garbage twice an update; what is there before training need not be looked at each time."""
    gc.collect()
    gc.freeze()


def ppo_trainer(
    out: Path, callbacks: list[Any], updates: int = 6, seed: int = 0, reward: Any = None, size: Any = None, **options: Any
) -> Any:
    """TRL's PPO on the tiny world; `options` are of its config."""
    from rldk.integrations.trl.ppo_trainer import find_ppo

    trainer_kind, config_kind = find_ppo()
    torch.set_num_threads(1)
    batch = options.pop("per_device_train_batch_size", 16)
    given = {
        "output_dir": str(out), "report_to": "none", "per_device_train_batch_size": batch, "gradient_accumulation_steps": 1,
        "total_episodes": updates * batch * int(os.environ.get("WORLD_SIZE", 1)), "num_ppo_epochs": 4, "num_mini_batches": 1,
        "response_length": 12, "learning_rate": 3e-3, "kl_coef": 0.05, "seed": seed, "save_strategy": "no", "stop_token": "eos",
        "num_sample_generations": 0, "missing_eos_penalty": None, "use_cpu": True, "bf16": False, "disable_tqdm": True,
        "gradient_checkpointing": False, "logging_steps": 1, "temperature": 1.0,
        **options,
    }  # fmt: skip
    size = size or {}
    reward = RuleReward() if reward is None else reward
    made = trainer_kind(
        args=config_kind(**given), processing_class=tokenizer(), model=policy(seed, **size), ref_model=policy(seed, **size),
        reward_model=reward, value_model=scorer(seed, **size), train_dataset=prompts(seed=seed), callbacks=callbacks,
    )  # fmt: skip
    made.is_distributed_loading_by_transformers = False
    np.random.seed(seed)  # TRL's PPO shuffles by numpy's global numbers, and seeds them nowhere
    return made


def group_trainer(
    kind: str, out: Path, callbacks: list[Any], steps: int = 6, seed: int = 0, reward: Any = good_words, **options: Any
) -> Any:
    """TRL's GRPO or RLOO on the tiny world."""
    import trl

    torch.set_num_threads(1)
    given = {
        "output_dir": str(out), "report_to": "none", "per_device_train_batch_size": 16, "gradient_accumulation_steps": 1,
        "num_generations": 4, "max_completion_length": 12, "max_steps": steps, "learning_rate": 3e-3, "beta": 0.05, "seed": seed,
        "save_strategy": "no", "logging_steps": 1, "use_cpu": True, "bf16": False, "disable_tqdm": True,
        "gradient_checkpointing": False, "temperature": 1.0,
        **options,
    }  # fmt: skip
    config_kind, trainer_kind = getattr(trl, f"{kind}Config"), getattr(trl, f"{kind}Trainer")
    return trainer_kind(
        model=saved(out / "start", seed), reward_funcs=reward, args=config_kind(**given),
        train_dataset=prompts(seed=seed, tokenised=False),
        processing_class=tokenizer(), callbacks=callbacks,
    )  # fmt: skip


def other_trainer(kind: str, out: Path, callbacks: list[Any], steps: int = 6, **options: Any) -> Any:
    """TRL's DPO or SFT on the tiny world."""
    import trl

    torch.set_num_threads(1)
    given = {
        "output_dir": str(out), "report_to": "none", "per_device_train_batch_size": 8, "max_steps": steps, "learning_rate": 1e-3,
        "save_strategy": "no", "logging_steps": 1, "use_cpu": True, "bf16": False, "disable_tqdm": True, "max_length": 32,
        "gradient_checkpointing": False,
        **options,
    }  # fmt: skip
    data = pairs() if kind == "DPO" else prompts(64, tokenised=False).rename_column("prompt", "text")
    config_kind, trainer_kind = getattr(trl, f"{kind}Config"), getattr(trl, f"{kind}Trainer")
    return trainer_kind(
        model=saved(out / "start"), args=config_kind(**given), train_dataset=data, processing_class=tokenizer(),
        callbacks=callbacks,
    )  # fmt: skip
