"""Responses and their rewards, as people hand them over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import nan
from typing import Any

from rldk.core.errors import UsageError
from rldk.core.jsonio import to_number

__all__ = ["length_and_reward"]

LENGTHS = ("length", "response_length", "num_tokens", "tokens", "completion_length", "response_tokens", "token_ids")
TEXTS = ("response", "response_text", "text", "completion", "output")
REWARDS = ("reward", "score", "reward_mean", "response_reward")


def length_and_reward(records: Any) -> Iterator[tuple[float, float]]:
    """Length and reward of each record; NaN for what a record does not say.

    A record is a mapping with a length (`length`, `response_length`, `tokens` …) or a text (`response`, `text` …, measured
    in characters) and a `reward` or `score`; or a pair of these. One record alone will do.
    """
    if isinstance(records, Mapping):
        records = (records,)
    if isinstance(records, (str, bytes)) or not isinstance(records, Iterable):
        raise UsageError(f"Expected `response_data` to be records of response and reward, got {records!r:.80}.")
    for record in records:
        if isinstance(record, Mapping):
            length, reward = _first(record, (*LENGTHS, *TEXTS)), _first(record, REWARDS)
        elif isinstance(record, (tuple, list)) and len(record) == 2:
            length, reward = record
        else:
            raise UsageError(
                f"Expected a record of `response_data` to be a mapping with a length or a text, and a reward, got {record!r:.80}."
            )
        yield _size(length), _number(reward)


def _first(record: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)


def _size(value: Any) -> float:
    """A number as it is; a text or a list of tokens by its length."""
    if isinstance(value, (str, bytes, list, tuple)):
        return float(len(value))
    found = _number(value)
    return float(len(value)) if found != found and hasattr(value, "__len__") else found


def _number(value: Any) -> float:
    found = to_number(value)
    return nan if found is None else found
