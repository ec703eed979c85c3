"""How many different prompts a run has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rldk.functional.preflight import DistinctCount, digest
from rldk.functional.responses import place_factors
from rldk.integrations.trl.probes.frames import array_of

__all__ = ["digests_of_group", "digests_of_rollout", "distinct_share"]

_COLUMNS = ("prompt", "prompt_ids", "prompt_input_ids", "query", "question")
_MAX_ROWS = 1024


def digests_of_rollout(local: Mapping[str, Any], pad: int | None) -> list[int]:
    """A number for each prompt of this process's part of a PPO rollout, however far it was padded on the left.

    It is a sum of products of tokens and the numbers of their places, all prompts at once: it is made in every update.
    """
    queries = array_of(local["query_responses"][:, : int(local["context_length"])])
    tokens = queries.astype(np.uint64) + np.uint64(1)
    if pad is not None:
        tokens[queries == pad] = 0
    tokens *= place_factors(tokens.shape[1])[::-1]
    digests: list[int] = tokens.sum(1, dtype=np.uint64).tolist()
    return digests


def digests_of_group(trainer: Any) -> list[int]:
    """A number for each prompt of the last batch of GRPO and RLOO, in all processes."""
    held = getattr(trainer, "_logs", None)
    found = held.get("prompt") if isinstance(held, Mapping) else None
    return [digest(str(prompt).encode()) for prompt in found or ()]


def distinct_share(data: Any, tokenised: bool) -> float | None:
    """The share of different prompts among at most 1024 evenly spaced records of a data set; `None` where it cannot be told.

    Args:
        data: a data set with columns.
        tokenised: whether its `input_ids` are prompts, as in PPO.
    """
    names = [*_COLUMNS, *(["input_ids"] if tokenised else [])]
    columns = getattr(data, "column_names", None)
    column = next((name for name in names if isinstance(columns, Sequence) and name in columns), None)
    if column is None or not hasattr(data, "select") or not len(data):
        return None
    rows = range(0, len(data), -(-len(data) // _MAX_ROWS))
    prompts = data.select(rows)[column]
    return DistinctCount().add(digest(str(prompt).encode()) for prompt in prompts) / len(rows)
