"""What each stage trains on, as tokens: packed blocks, conversations, pairs and prompts.

Which of them a step takes is a function of the step and the seed (`batch_indices` in trainer_utils.py), so the position
in the data is the step itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from data_config import DataError

__all__ = ["Conversations", "PackedBlocks", "Pairs", "Prompts", "left_pad", "right_pad"]

IGNORED = -100  # a label that no loss looks at


class PackedBlocks(Sequence[Tensor]):
    """Documents one after the other, each closed by the end token, cut into blocks of one length: no padding at all."""

    def __init__(self, records: Sequence[dict[str, Any]], tokenizer: Any, length: int) -> None:
        encoded = tokenizer([record["text"] for record in records], add_special_tokens=False)["input_ids"]
        flat = [token for document in encoded for token in (*document, tokenizer.eos_token_id)]
        count = len(flat) // length
        if count == 0:
            raise DataError(
                f"{len(flat)} tokens do not fill one block of {length}; make --max_seq_len smaller or the data larger."
            )
        self.blocks = torch.tensor(flat[: count * length]).view(count, length)

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, place: Any) -> Any:
        return self.blocks[place]

    @staticmethod
    def collate(blocks: list[Tensor]) -> dict[str, Tensor]:
        """Every token is learnt; the model itself moves labels by one."""
        tokens = torch.stack(blocks)
        return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": tokens.clone()}


class Conversations(Sequence[tuple[list[int], list[int]]]):
    """Conversations with labels on the assistant's words and end token only. Longer ones than `length` are left out."""

    def __init__(self, records: Sequence[dict[str, Any]], tokenizer: Any, length: int) -> None:
        self.pad = tokenizer.pad_token_id
        encoded = [conversation_tokens(record["messages"], tokenizer) for record in records]
        self.items = _within(encoded, length, lambda item: len(item[0]), "conversations")

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: Any) -> Any:
        return self.items[place]

    def collate(self, items: list[tuple[list[int], list[int]]]) -> dict[str, Tensor]:
        tokens, mask = right_pad([item[0] for item in items], self.pad)
        labels, _ = right_pad([item[1] for item in items], IGNORED)
        return {"input_ids": tokens, "attention_mask": mask, "labels": labels}


class Pairs(Sequence[tuple[list[int], list[int], list[int]]]):
    """A prompt with a chosen and a rejected answer, each closed by the end token. Longer ones than `length` are left out."""

    def __init__(self, records: Sequence[dict[str, Any]], tokenizer: Any, length: int) -> None:
        self.pad = tokenizer.pad_token_id
        end = [tokenizer.eos_token_id]
        encoded = []
        for record in records:
            answers = tokenizer([record["chosen"], record["rejected"]], add_special_tokens=False)["input_ids"]
            encoded.append((prompt_tokens(record["prompt"], tokenizer), answers[0] + end, answers[1] + end))
        self.items = _within(encoded, length, lambda item: len(item[0]) + max(len(item[1]), len(item[2])), "pairs")

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: Any) -> Any:
        return self.items[place]

    def collate(self, items: list[tuple[list[int], list[int], list[int]]]) -> dict[str, Tensor]:
        """The chosen answers first, then the rejected ones in the same order; labels on the answers only."""
        rows = [(prompt, answer) for which in (1, 2) for prompt, answer in ((item[0], item[which]) for item in items)]
        tokens, mask = right_pad([prompt + answer for prompt, answer in rows], self.pad)
        labels, _ = right_pad([[IGNORED] * len(prompt) + answer for prompt, answer in rows], IGNORED)
        return {"input_ids": tokens, "attention_mask": mask, "labels": labels}


class Prompts(Sequence[dict[str, Any]]):
    """Prompts as the chat template gives them, padded on the left so that answers begin in one column."""

    def __init__(self, records: Sequence[dict[str, Any]], tokenizer: Any, length: int) -> None:
        self.pad = tokenizer.pad_token_id
        encoded = [
            {"tokens": prompt_tokens(record["text"], tokenizer), "text": record["text"], "source": record["source"]}
            for record in records
        ]
        self.items = _within(encoded, length, lambda item: len(item["tokens"]), "prompts")

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: Any) -> Any:
        return self.items[place]

    def collate(self, items: list[dict[str, Any]]) -> dict[str, Any]:
        """`input_ids` and `attention_mask`, and the words and sources of the prompts for the reward."""
        tokens, mask = left_pad([item["tokens"] for item in items], self.pad)
        return {
            "input_ids": tokens,
            "attention_mask": mask,
            "texts": [item["text"] for item in items],
            "sources": [item["source"] for item in items],
        }


def prompt_tokens(text: str, tokenizer: Any) -> list[int]:
    """A user's words up to where the answer begins; without a chat template, the words alone."""
    if tokenizer.chat_template is None:
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])
    rendered = tokenizer.apply_chat_template([{"role": "user", "content": text}], add_generation_prompt=True, tokenize=False)
    return list(tokenizer(rendered, add_special_tokens=False)["input_ids"])


def conversation_tokens(messages: list[dict[str, str]], tokenizer: Any) -> tuple[list[int], list[int]]:
    """Tokens and labels; what the template adds after an answer's end token is not learnt."""
    if tokenizer.chat_template is None:
        raise DataError("The tokenizer has no chat template; `trainer/train_tokenizer.py` makes one that has.")
    tokens: list[int] = []
    labels: list[int] = []
    done = ""

    def add(text: str, learnt: bool) -> None:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        keep = len(ids) if learnt else 0
        if learnt and tokenizer.eos_token_id in ids:
            keep = len(ids) - ids[::-1].index(tokenizer.eos_token_id)
        tokens.extend(ids)
        labels.extend(ids[:keep] + [IGNORED] * (len(ids) - keep))

    for number, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        before = tokenizer.apply_chat_template(messages[:number], add_generation_prompt=True, tokenize=False)
        after = tokenizer.apply_chat_template(messages[: number + 1], tokenize=False)
        if not before.startswith(done) or not after.startswith(before):
            raise DataError("The chat template changes earlier turns when a later one is added; answers cannot be told apart.")
        add(before[len(done) :], learnt=False)
        add(after[len(before) :], learnt=True)
        done = after
    return tokens, labels


def right_pad(rows: list[list[int]], fill: int) -> tuple[Tensor, Tensor]:
    """Rows of one length and the mask of what was there."""
    width = max(map(len, rows))
    return (
        torch.tensor([row + [fill] * (width - len(row)) for row in rows]),
        torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows]),
    )


def left_pad(rows: list[list[int]], fill: int) -> tuple[Tensor, Tensor]:
    """As `right_pad`, with what is filled in on the left."""
    width = max(map(len, rows))
    return (
        torch.tensor([[fill] * (width - len(row)) + row for row in rows]),
        torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows]),
    )


def _within(items: list[Any], length: int, size: Callable[[Any], int], what: str) -> list[Any]:
    """Those that fit; silent about none: fewer than half is refused, any other loss is printed."""
    kept = [item for item in items if size(item) <= length]
    if len(kept) * 2 < len(items):
        raise DataError(
            f"{len(items) - len(kept)} of {len(items)} {what} are longer than {length} tokens "
            f"(the longest has {max(map(size, items))}); make --max_seq_len larger."
        )
    if len(kept) < len(items):
        print(f"data: {len(items) - len(kept)} of {len(items)} {what} longer than {length} tokens left out")
    return kept
