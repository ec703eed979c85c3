"""Conversations as tokens: where an answer begins, and with which tokens it ends. All stages use this module, so that they agree.

A model may end its answers with another token than its tokenizer's `eos_token`: the chat template of Gemma closes a turn with
`<end_of_turn>`, and a `generation_config` may list several. SFT, DPO and the reward model learn the token that the template
writes after an answer; PPO and evaluation stop at any of `end_tokens`.
"""

from __future__ import annotations

from typing import Any

from data_config import DataError

IGNORED = -100  # the label of tokens that are not learnt
_PROBE = "probe7"


def end_tokens(tokenizer: Any, *models: Any) -> list[int]:
    """All tokens that end an answer: of the chat template, the tokenizer, and each model's generation config and config."""
    found = [template_end(tokenizer), tokenizer.eos_token_id]
    for model in models:
        for config in (getattr(model, "generation_config", None), getattr(model, "config", None)):
            given = getattr(config, "eos_token_id", None)
            found += given if isinstance(given, list | tuple) else [given]
    found = list(dict.fromkeys(token for token in found if token is not None))
    if not found:
        raise DataError("No end token: neither the tokenizer nor its chat template nor the model's generation config has one.")
    return found


def template_end(tokenizer: Any) -> int | None:
    """The special token that the chat template writes after an answer, or `None`."""
    if tokenizer.chat_template is None:
        return None
    talk = [{"role": "user", "content": "?"}, {"role": "assistant", "content": _PROBE}]
    after = tokenizer.apply_chat_template(talk, tokenize=False).rpartition(_PROBE)[2]
    special = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
    return next((token for token in _encode(after, tokenizer) if token in special), None)


Prompt = str | list[dict[str, str]]
"""A user's message, or a conversation that ends with one."""


def messages_of(prompt: Prompt) -> list[dict[str, str]]:
    return [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt


def prompt_tokens(prompt: Prompt, tokenizer: Any) -> list[int]:
    """A prompt up to where the answer begins; without a chat template, its text alone."""
    return talk_tokens(messages_of(prompt), tokenizer)


def talk_tokens(messages: list[dict[str, str]], tokenizer: Any) -> list[int]:
    """A conversation up to where the next answer begins; without a chat template, its texts one after the other."""
    if tokenizer.chat_template is None:
        return _encode(" ".join(message["content"] for message in messages), tokenizer)
    return _encode(tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False), tokenizer)


def answer_tokens(prompt: Prompt, answer: str, tokenizer: Any, end: int | None) -> tuple[list[int], list[int]]:
    """Prompt and answer, the answer with its end token, as the last turn of a conversation."""
    if tokenizer.chat_template is None:
        return prompt_tokens(prompt, tokenizer), [*_encode(answer, tokenizer), tokenizer.eos_token_id]
    talk = [*messages_of(prompt), {"role": "assistant", "content": answer}]
    tokens, labels = conversation_tokens(talk, tokenizer, end)
    learnt = [place for place, label in enumerate(labels) if label != IGNORED]
    begin = max((place + 1 for place in range(learnt[-1]) if labels[place] == IGNORED), default=0)  # after the earlier turns
    return tokens[:begin], tokens[begin : learnt[-1] + 1]


def conversation_tokens(messages: list[dict[str, str]], tokenizer: Any, end: int | None) -> tuple[list[int], list[int]]:
    """Tokens and labels; `end` is what `template_end` found.

    Answers are learnt up to and with their end token; what the template adds after it is not.

    Where the template writes no end token after an answer, the tokenizer's is put there: without one no model learns to stop.
    """
    if tokenizer.chat_template is None:
        raise DataError("The tokenizer has no chat template; `trainer/train_tokenizer.py` makes one that has.")
    end = tokenizer.eos_token_id if end is None else end
    tokens: list[int] = []
    labels: list[int] = []
    done = ""
    for number, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        before = tokenizer.apply_chat_template(messages[:number], add_generation_prompt=True, tokenize=False)
        after = tokenizer.apply_chat_template(messages[: number + 1], tokenize=False)
        if not before.startswith(done) or not after.startswith(before):
            raise DataError("The chat template changes earlier turns when a later one is added; the answers cannot be located.")
        asked, said = _encode(before[len(done) :], tokenizer), _encode(after[len(before) :], tokenizer)
        last = max((place for place, token in enumerate(said) if token == end), default=None)
        if last is None:
            said.append(end)
            last = len(said) - 1
        tokens += asked + said
        labels += [IGNORED] * len(asked) + said[: last + 1] + [IGNORED] * (len(said) - last - 1)
        done = after
    return tokens, labels


def _encode(text: str, tokenizer: Any) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])
