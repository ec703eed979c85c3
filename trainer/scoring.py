"""Scores of responses: by a function of texts and data columns, or by a trained sequence classifier."""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from chat_tokens import Prompt, messages_of
from models import count_parameters, disable_dropout, load_model, model_folder, saved_tokenizer
from rollout import Rollout


def load_reward(name: str, folder_allowed: bool = True) -> Any:
    """The reward of --reward: the function `module:function`, or the folder of a classifier, also from a hub name."""
    if folder_allowed and ":" not in name and (Path(name).is_dir() or "/" in name):
        return model_folder(name, "--reward")
    module, colon, function = name.partition(":")
    if not colon or not module or not function:
        raise ValueError(f"--reward {name}: expected a sequence classifier (folder or hub name) or `module:function`.")
    sys.path[:0] = [path for path in (str(Path.cwd()),) if path not in sys.path]
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"--reward {name} cannot be imported: {error}") from error


def load_scorer(args: argparse.Namespace, tokenizer: Any, device: torch.device, name: str | None = None) -> Any:
    """A function of a batch of prompts and their rollout, with the number of its parameters; `name` overrides --reward."""
    reward = load_reward(name or args.reward)
    if isinstance(reward, Path):
        return ClassifierScorer(args, reward, tokenizer, device)
    return FunctionScorer(reward, tokenizer)


def call_reward(
    reward: Callable[..., Any], prompts: list[str], responses: list[str], columns: dict[str, list[Any]]
) -> list[float]:
    """Call `reward(prompts, responses, **columns)` with the columns that the function takes: all for `**`, else by name."""
    taken = inspect.signature(reward).parameters
    if not any(one.kind is one.VAR_KEYWORD for one in taken.values()):
        named = list(taken)[2:]
        needed = [name for name in named if taken[name].default is inspect.Parameter.empty]
        if missing := [name for name in needed if name not in columns]:
            raise ValueError(
                f"The reward function needs the columns {missing}; the data have {sorted(columns)}. Name them under `columns` of "
                "the source in the data config."
            )
        columns = {name: values for name, values in columns.items() if name in named}
    scores = reward(prompts, responses, **columns)
    if len(scores) != len(responses):
        raise ValueError(f"Expected the reward function to give {len(responses)} numbers, got {len(scores)}.")
    return scores


class FunctionScorer:
    """Scores by a function of texts."""

    parameters = 0

    def __init__(self, reward: Callable[..., Any], tokenizer: Any) -> None:
        self.reward, self.tokenizer = reward, tokenizer

    def __call__(self, batch: dict[str, Any], roll: Rollout) -> Tensor:
        words = self.tokenizer.batch_decode(roll.responses, skip_special_tokens=True)
        return torch.as_tensor(call_reward(self.reward, batch["texts"], words, batch["columns"]), dtype=torch.float32)


class ClassifierScorer:
    """Scores by a sequence classifier, a batch at a time; with its own tokenizer, it reads the decoded text."""

    def __init__(self, args: argparse.Namespace, folder: Path, tokenizer: Any, device: torch.device) -> None:
        own = _tokenizer_of(folder)
        self.ours, self.theirs = tokenizer, own if own is not None and not _same(own, tokenizer) else None
        model = load_model(args, "score", folder=folder, tokenizer=self.theirs or tokenizer)
        self.model = disable_dropout(model).to(device).eval().requires_grad_(False)
        self.parameters, self.size, self.device = count_parameters(model, False), args.batch_size, device

    def __call__(self, batch: dict[str, Any], roll: Rollout) -> Tensor:
        found = []
        for at in range(0, len(roll.tokens), self.size):
            rows = slice(at, at + self.size)
            if self.theirs is None:
                tokens, attention = roll.tokens[rows], roll.attention[rows]
            else:
                words = self.ours.batch_decode(roll.responses[rows], skip_special_tokens=True)
                prompts = batch["columns"].get("messages") or batch["texts"]
                texts = [self._conversation(asked, said) for asked, said in zip(prompts[rows], words, strict=True)]
                encoded = self.theirs(
                    texts, padding=True, return_tensors="pt", add_special_tokens=self.theirs.chat_template is None
                )
                tokens, attention = encoded["input_ids"].to(self.device), encoded["attention_mask"].to(self.device)
            positions = (attention.cumsum(1) - 1).clamp(min=0)
            given = {"input_ids": tokens, "attention_mask": attention, "position_ids": positions, "use_cache": False}
            found.append(self.model(**given).logits[:, 0].float())
        return torch.cat(found)

    def _conversation(self, asked: Prompt, said: str) -> str:
        talk = [*messages_of(asked), {"role": "assistant", "content": said}]
        if self.theirs.chat_template is None:
            return " ".join(message["content"] for message in talk)
        return self.theirs.apply_chat_template(talk, tokenize=False)


def _tokenizer_of(folder: Path) -> Any:
    """The tokenizer that was saved with a reward model, or `None`."""
    there = any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer_config.json"))
    return saved_tokenizer(folder) if there else None


def _same(one: Any, other: Any) -> bool:
    return one.get_vocab() == other.get_vocab() and one.chat_template == other.chat_template
