"""The small world that every recorded run is trained in: words, prompts, base models and true rewards.

A prompt asks for the colour of a thing. A good answer names the right colour and uses pleasant words, without the unpleasant
ones. Words are tokens. Base models are pretrained here, from a seed, on answers that are right one time in three, so that a
policy starts where fine-tuning starts: it speaks the language, ends its answers, and has something left to learn.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for _name, _value in {
    "TRL_EXPERIMENTAL_SILENCE": "1", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false",
    "WANDB_MODE": "offline", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "",
}.items():  # fmt: skip
    os.environ.setdefault(_name, _value)

PAD, EOS, UNK, ASKED = 0, 1, 2, 3
SUBJECTS = ("sky", "grass", "snow", "coal", "rose", "sun", "sea", "leaf", "milk", "night", "brick", "straw")
COLOURS = ("blue", "green", "white", "black", "red", "yellow")
GOOD = ("kind", "calm", "warm", "bright", "fine", "neat")
BAD = ("cold", "dull", "loud", "rude", "harsh", "grim")
NAMES, TIMES = ("ann", "bob", "cleo", "dan"), ("", "now", "today", "here")
OTHER = ("asks", "what", "colour", "has", "the", "it", "is", "and", "very", "so", "well", ".")
WORDS = (*SUBJECTS, *COLOURS, *GOOD, *BAD, *NAMES, *TIMES[1:], *OTHER)
SPECIAL = ("<pad>", "<eos>", "<unk>", "?")
VOCABULARY = {word: number for number, word in enumerate((*SPECIAL, *WORDS))}
RIGHT = {subject: COLOURS[number % len(COLOURS)] for number, subject in enumerate(SUBJECTS)}
REWARDS = ("dense", "binary", "sparse", "components", "model", "brief")


@dataclass(frozen=True)
class Shape:
    """How a base model is built and how long it is pretrained."""

    kind: str
    hidden: int
    layers: int
    heads: int
    seed: int
    steps: int
    skill: float = 0.35


SHAPES = {
    "llama-small": Shape("llama", 32, 2, 4, 11, 500),
    "llama-wide": Shape("llama", 64, 2, 4, 12, 400),
    "qwen-deep": Shape("qwen2", 40, 4, 4, 13, 450),
    "gpt2": Shape("gpt2", 48, 2, 4, 14, 600),
    "foreign": Shape("llama", 32, 2, 4, 99, 120, 0.1),
}
"""`foreign` is no base of a run: it is the wrong reference of one fault."""


def all_prompts() -> list[str]:
    texts = [
        " ".join(part for part in (name, "asks", when, "what", "colour", "the", subject, "has", "?") if part)
        for name in NAMES for subject in SUBJECTS for when in TIMES
    ]  # fmt: skip
    random.Random(5).shuffle(texts)
    return texts


def training_prompts() -> list[str]:
    return all_prompts()[48:]


def held_out_prompts() -> list[str]:
    """Never trained on; the outcome of a run is measured on them."""
    return all_prompts()[:48]


def subject_of(prompt: str) -> str:
    return next((word for word in prompt.split() if word in RIGHT), "")


def answer(prompt: str, chance: random.Random, skill: float) -> list[str]:
    """A random answer of the base language."""
    subject = subject_of(prompt)
    words = ["well"] if chance.random() < 0.15 else []
    words += ["the", subject, "is"] if chance.random() < 0.8 else ["it", "is"]
    words.append(RIGHT[subject] if chance.random() < skill else chance.choice(COLOURS))
    while len(words) < 14 and chance.random() < 0.75:
        words.append("and")
        words += [chance.choice(("very", "so"))] if chance.random() < 0.3 else []
        words.append(chance.choice(GOOD if chance.random() < 0.45 else BAD))
    return words + (["."] if chance.random() < 0.7 else [])


# What the responses are truly worth.


def right(prompt: str, words: Sequence[str]) -> float:
    """1 where the asked-for colour is the only one named."""
    return float({word for word in words if word in COLOURS} == {RIGHT.get(subject_of(prompt), "")})


def pleasant(words: Sequence[str]) -> float:
    """Half a point for each different good word, up to two, less half a point for every bad one; not below -1."""
    return max(-1.0, (min(2, len({word for word in words if word in GOOD})) - sum(word in BAD for word in words)) / 2)


def parts(prompt: str, words: Sequence[str], ended: bool) -> tuple[float, float, float]:
    return right(prompt, words), pleasant(words), 0.5 * float(ended)


def gold(kind: str, prompt: str, words: Sequence[str], ended: bool) -> float:
    """The true reward of a response under one of `REWARDS`."""
    if kind == "dense":
        return pleasant(words)
    if kind == "binary":
        return right(prompt, words)
    if kind == "sparse":
        return float(right(prompt, words) and ended and list(words[:1]) == ["well"])
    if kind == "components":
        return sum(parts(prompt, words, ended))
    if kind == "model":
        return right(prompt, words) + pleasant(words)
    if kind == "brief":
        return right(prompt, words) + pleasant(words) - 0.04 * len(words)
    raise ValueError(f"Expected `kind` to be one of {list(REWARDS)}, got {kind!r}.")


# Tokenizer and models.


def tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    inner = Tokenizer(models.WordLevel(VOCABULARY, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left",
        model_input_names=["input_ids", "attention_mask"],
    )  # fmt: skip
    made.chat_template = "{% for m in messages %}{{ m['content'] }} {% endfor %}"
    return made


def model_config(shape: Shape, **more: Any) -> Any:
    from transformers import GPT2Config, LlamaConfig, Qwen2Config

    tokens = {"vocab_size": len(VOCABULARY), "pad_token_id": PAD, "eos_token_id": EOS, "bos_token_id": EOS, **more}
    if shape.kind == "gpt2":
        off = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "n_positions": 96}
        return GPT2Config(n_embd=shape.hidden, n_layer=shape.layers, n_head=shape.heads, **{**off, **tokens})
    kind = {"llama": LlamaConfig, "qwen2": Qwen2Config}[shape.kind]
    return kind(
        hidden_size=shape.hidden, intermediate_size=2 * shape.hidden, num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads, num_key_value_heads=shape.heads, max_position_embeddings=96,
        tie_word_embeddings=False, **tokens,
    )  # fmt: skip


def bases(root: Path) -> Path:
    """Pretrain every base model and its reward model below `root`, unless they are there already."""
    for name, shape in SHAPES.items():
        if not (root / name / "policy" / "config.json").exists():
            _pretrain(shape, root / name / "policy")
            if name != "foreign":
                _train_scorer(root / name / "policy", shape, root / name / "scorer")
    return root


def _pretrain(shape: Shape, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)
    torch.manual_seed(shape.seed)
    model, chance, prompts = AutoModelForCausalLM.from_config(model_config(shape)), random.Random(shape.seed), all_prompts()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=shape.steps)
    for _ in range(shape.steps):
        asked = [chance.choice(prompts) for _ in range(48)]
        rows = [(encode(prompt), [*map(VOCABULARY.get, answer(prompt, chance, shape.skill)), EOS]) for prompt in asked]
        width = max(len(p) + len(r) for p, r in rows)
        ids = torch.tensor([p + r + [PAD] * (width - len(p) - len(r)) for p, r in rows])
        labels = torch.tensor([[-100] * len(p) + r + [-100] * (width - len(p) - len(r)) for p, r in rows])
        loss = model(input_ids=ids, attention_mask=(ids != PAD).long(), labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.save_pretrained(str(folder))
    tokenizer().save_pretrained(str(folder))


def _train_scorer(policy: Path, shape: Shape, folder: Path) -> None:
    """A reward model from the base: it has seen answers of the base language only, which is what makes it exploitable."""
    import torch
    from transformers import AutoModelForSequenceClassification

    torch.manual_seed(shape.seed + 1)
    model = AutoModelForSequenceClassification.from_pretrained(str(policy), num_labels=1, pad_token_id=PAD)
    chance, prompts = random.Random(shape.seed + 1), training_prompts()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
    for _ in range(250):
        asked = [chance.choice(prompts) for _ in range(32)]
        said = [answer(prompt, chance, 0.5) for prompt in asked]
        rows = [[*encode(prompt), *map(VOCABULARY.get, words), EOS] for prompt, words in zip(asked, said, strict=True)]
        width = max(map(len, rows))
        ids = torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
        target = torch.tensor([gold("model", prompt, words, True) for prompt, words in zip(asked, said, strict=True)])
        found = model(input_ids=ids, attention_mask=(ids != PAD).long()).logits[:, 0]
        loss = (found - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.save_pretrained(str(folder))
    tokenizer().save_pretrained(str(folder))


def encode(text: str) -> list[int]:
    return [VOCABULARY.get(word, UNK) for word in text.split()]


def decode(tokens: Sequence[int]) -> list[str]:
    """The words of a response, up to its end."""
    names = (*SPECIAL, *WORDS)
    kept = tokens[: tokens.index(EOS)] if EOS in tokens else tokens
    return [names[token] for token in kept if token not in (PAD, EOS)]
