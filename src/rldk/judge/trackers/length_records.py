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
            length, reward = _length_of(record), _first(record, REWARDS)
        elif isinstance(record, (tuple, list)) and len(record) == 2:
            length, reward = _size(record[0]), record[1]
        else:
            raise UsageError(
                f"Expected a record of `response_data` to be a mapping with a length or a text, and a reward, got {record!r:.80}."
            )
        yield length, _number(reward)


def _first(record: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)


def _length_of(record: Mapping[str, Any]) -> float:
    stated = _first(record, LENGTHS)
    number = _number(stated)
    return number if number == number else _size(_first(record, TEXTS) if stated is None else stated)


def _size(value: Any) -> float:
    """A text or a list of tokens by its length, a number as it is."""
    if isinstance(value, (str, bytes, list, tuple)):
        return float(len(value))
    number = _number(value)
    return float(len(value)) if number != number and hasattr(value, "__len__") else number


def _number(value: Any) -> float:
    number = to_number(value)
    return nan if number is None else number
