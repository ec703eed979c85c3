"""What each stage trains on, as tokens: packed blocks, conversations, pairs and prompts.

Which of them a step takes is a function of the step and the seed (`data_order.py`), so the position
in the data is the step itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from chat_tokens import IGNORED, answer_tokens, conversation_tokens, messages_of, prompt_tokens, template_end
from data_config import DataError

__all__ = ["Conversations", "PackedBlocks", "Pairs", "Prompts", "left_pad", "right_pad"]


class PackedBlocks(Sequence[Tensor]):
    """Documents one after the other, each closed by the end token, cut into blocks of one length: no padding at all."""

    def __init__(self, records: Sequence[dict[str, Any]], tokenizer: Any, length: int) -> None:
        texts = [record["text"] if "messages" not in record else _rendered(record["messages"], tokenizer) for record in records]
        encoded = tokenizer(texts, add_special_tokens=False)["input_ids"]
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
        """Every token is learnt; the model shifts the labels by one."""
        tokens = torch.stack(blocks)
        return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": tokens.clone()}


class Conversations(Sequence[tuple[list[int], list[int]]]):
    """Conversations with labels on the assistant's words and end token only. Longer ones than `length` are left out."""

    def __init__(self, records: Sequence[dict[str, Any]], tokenizer: Any, length: int) -> None:
        self.pad = tokenizer.pad_token_id
        end = template_end(tokenizer)
        encoded = [conversation_tokens(record["messages"], tokenizer, end) for record in records]
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
        encoded, end = [], template_end(tokenizer)
        for record in records:
            prompt, chosen = answer_tokens(record["prompt"], record["chosen"], tokenizer, end)
            encoded.append((prompt, chosen, answer_tokens(record["prompt"], record["rejected"], tokenizer, end)[1]))
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
        talks = any("messages" in record for record in records)  # then all prompts are conversations, also for the reward
        encoded = []
        for record in records:
            columns = {key: value for key, value in record.items() if key not in ("text", "source")}
            columns |= {"messages": messages_of(record.get("messages") or record["text"])} if talks else {}
            tokens = prompt_tokens(record.get("messages") or record["text"], tokenizer)
            encoded.append({"tokens": tokens, "text": record["text"], "source": record["source"], "columns": columns})
        self.items = _within(encoded, length, lambda item: len(item["tokens"]), "prompts")

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: Any) -> Any:
        return self.items[place]

    def collate(self, items: list[dict[str, Any]]) -> dict[str, Any]:
        """`input_ids` and `attention_mask`, and the texts, sources and other columns of the prompts for the reward."""
        tokens, mask = left_pad([item["tokens"] for item in items], self.pad)
        return {
            "input_ids": tokens,
            "attention_mask": mask,
            "texts": [item["text"] for item in items],
            "sources": [item["source"] for item in items],
            "columns": {name: [item["columns"].get(name) for item in items] for name in items[0]["columns"]},
        }


def _rendered(messages: list[dict[str, str]], tokenizer: Any) -> str:
    """A conversation as the chat template writes it; without one, its texts one after the other."""
    if tokenizer.chat_template is None:
        return "\n".join(message["content"] for message in messages)
    return tokenizer.apply_chat_template(messages, tokenize=False)


def right_pad(rows: list[list[int]], fill: int) -> tuple[Tensor, Tensor]:
    """Rows of one length, and the mask of the original items."""
    width = max(map(len, rows))
    return (
        torch.tensor([row + [fill] * (width - len(row)) for row in rows]),
        torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows]),
    )


def left_pad(rows: list[list[int]], fill: int) -> tuple[Tensor, Tensor]:
    """As `right_pad`, padded on the left."""
    width = max(map(len, rows))
    return (
        torch.tensor([[fill] * (width - len(row)) + row for row in rows]),
        torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows]),
    )


def _within(items: list[Any], length: int, size: Callable[[Any], int], what: str) -> list[Any]:
    """The items that fit. It is an error if fewer than half do; otherwise the number left out is printed."""
    kept = [item for item in items if size(item) <= length]
    if len(kept) * 2 < len(items):
        raise DataError(
            f"{len(items) - len(kept)} of {len(items)} {what} are longer than {length} tokens "
            f"(the longest has {max(map(size, items))}); make --max_seq_len larger."
        )
    if len(kept) < len(items):
        print(f"data: {len(items) - len(kept)} of {len(items)} {what} longer than {length} tokens left out")
    return kept
