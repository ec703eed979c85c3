"""How many of a rollout's responses differ, and how much each of them repeats itself."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

__all__ = [
    "MAX_RESPONSES", "ResponseSample", "describe_responses", "distinct_endings", "place_factors", "row_digests",
    "sample_responses",
]  # fmt: skip

ResponseSample = tuple[list[int], list[float]]
"""A number for each response, equal for equal tokens; and the repetition of those that are long enough."""

MAX_RESPONSES = 64
_MAX_REPETITION = 32  # responses whose repetition is measured
_MAX_TOKENS = 256  # of each of them
_MIN_TOKENS = 4  # fewer have too few pairs to repeat one


def sample_responses(tokens: Any, lengths: Any) -> ResponseSample:
    """A sample of the responses: how many of at most 64 differ, and how much at most 32 repeat themselves.

    The repetition of a response is 1 minus distinct over all pairs of neighbouring tokens, of at most 256 tokens.

    Args:
        tokens: an array of token ids, one row per response, padded on the right with anything.
        lengths: how many tokens of each row are the response.
    """
    kept = np.asarray(tokens)[:MAX_RESPONSES].astype(np.int64)
    width = kept.shape[1]
    real = np.arange(width) < np.asarray(lengths)[: len(kept), None]
    digests = row_digests(kept, real, place_factors(width))
    few, real = kept[:_MAX_REPETITION, :_MAX_TOKENS], real[:_MAX_REPETITION, :_MAX_TOKENS]
    pairs = few << 32
    pairs[:, :-1] += few[:, 1:]
    pairs[:, :-1] *= real[:, 1:]
    pairs[:, -1:] = 0  # as pairs with padding are: they are no pair
    pairs.sort(1)
    distinct = (pairs[:, 1:] != pairs[:, :-1]).sum(1).tolist()
    found = zip(distinct, real.sum(1).tolist(), strict=True)
    return digests, [1.0 - count / (size - 1) for count, size in found if size >= _MIN_TOKENS]


def distinct_endings(tokens: Any, lengths: Any, size: int = 5) -> float:
    """The share of different endings among at most 64 responses: their last `size` tokens, the end token among them."""
    kept, lengths = np.asarray(tokens)[:MAX_RESPONSES], np.asarray(lengths)[:MAX_RESPONSES]
    endings = {tuple(row[max(length - size, 0) : length].tolist()) for row, length in zip(kept, lengths.astype(int), strict=True)}
    return len(endings) / max(len(kept), 1)


def describe_responses(samples: Iterable[ResponseSample]) -> dict[str, float]:
    """The metrics of the samples of all processes together, to which each contributes its share of the 64 and 32 responses."""
    every = [sample for sample in samples if sample[0]]
    if not every:
        return {}
    share, few = (max(1, limit // len(every)) for limit in (MAX_RESPONSES, _MAX_REPETITION))
    digests = [one for sample in every for one in sample[0][:share]][:MAX_RESPONSES]
    repetition = [one for sample in every for one in sample[1][:few]]
    found = {"distinct_responses_frac": len(set(digests)) / len(digests)}
    return found | ({"repetition_frac": sum(repetition) / len(repetition)} if repetition else {})


def row_digests(tokens: Any, real: Any, factors: Any) -> list[int]:
    """A number for each row of token ids: the sum of products of those that are `real` and the numbers of their places.

    The tokens are changed to what is summed: 1 more than they are, and 0 where they are not real.
    """
    tokens += 1
    tokens *= real
    found: list[int] = (tokens.view(np.uint64) @ factors).tolist()
    return found


def place_factors(count: int) -> Any:
    """An odd number for each of so many places, the same in every process: sums of tokens times these distinguish rows."""
    return _factors(-(-count // 256) * 256)[:count]


@lru_cache(maxsize=4)
def _factors(count: int) -> Any:
    return np.random.default_rng(0).integers(1 << 63, size=count, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
