"""The statistics of a PPO rollout that TRL does not log, and those that it logs too small."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

import numpy as np

from rldk.functional.advantages import describe
from rldk.functional.responses import MAX_RESPONSES, ResponseSample, place_factors, row_digests, sample_responses
from rldk.integrations.trl.probes.stack import array_of

__all__ = [
    "digests_of_rollout", "filled_share", "pairs_of", "reduce_rollouts", "responses_of_rollout", "rollout_sample", "texts_of",
    "thinned", "undiluted",
]  # fmt: skip

_TENSORS = (
    "scores", "sequence_lengths", "contain_eos_token", "kl", "rewards", "returns", "values", "padding_mask", "padding_mask_p1",
)  # fmt: skip
_AVERAGED = frozenset({
    "policy/approxkl_avg", "policy/clipfrac_avg", "policy/entropy_avg", "loss/policy_avg", "loss/value_avg", "val/clipfrac_avg",
    "val/ratio",
})  # fmt: skip
_MOST_TOKENS = 65536
_MOST_PAIRS = 512


def rollout_sample(local: Mapping[str, Any]) -> dict[str, Any]:
    """One process's part of a rollout as arrays, with one value per response or per token.

    Some share the memory of the tensors: use them at once and do not keep them.
    """
    scores, sizes, ended, kl, rewards, returns, values, padding, padding_p1 = [array_of(local[name]) for name in _TENSORS]
    valued, away = ~padding_p1, returns - values
    return {
        "scores": scores.reshape(-1),
        "lengths": sizes + 1,
        "ended": ended,
        "kl": np.add.reduce(kl, 1),
        "rewards": np.add.reduce(rewards, 1),
        "values": thinned(values[valued]),
        "returns": thinned(returns[valued]),
        "missed": thinned(away[valued]),
        "advantages": thinned(away[~padding]),
    }


def thinned(array: Any) -> Any:
    """At most 65536 of these numbers, taken at even distances."""
    return array[:: -(-len(array) // _MOST_TOKENS)] if len(array) > _MOST_TOKENS else array


def reduce_rollouts(parts: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """The metrics of the whole rollout from the parts of all processes; values that are not finite are kept."""
    every = [part for part in parts if part]
    if not every:
        return {}
    names = [name for name in every[0] if name != "advantages" and all(name in part for part in every)]
    mean, std, low, high, square = _spreads(names, [[part[name] for part in every] for name in names])
    count = sum(len(part["scores"]) for part in every)
    known = count if math.isfinite(mean["scores"]) else sum(int(np.isfinite(part["scores"]).sum()) for part in every)
    found = {
        "reward_std": std["scores"],
        "reward_min": low["scores"],
        "reward_max": high["scores"],
        "reward_missing_frac": 1.0 - known / count,
        "rollout_mean_reward": mean["rewards"],
        "rollout_std_reward": std["rewards"],
        "rollout_length_mean": mean["lengths"],
        "rollout_length_std": std["lengths"],
        "rollout_length_min": low["lengths"],
        "rollout_length_max": high["lengths"],
        "eos_frac": mean["ended"],
        "truncated_frac": 1.0 - mean["ended"],
        "kl_std": std["kl"],
        "kl_max": high["kl"],
        "value_mean": mean["values"],
        "value_std": std["values"],
        "value_min": low["values"],
        "value_max": high["values"],
        "return_mean": mean["returns"],
        "return_std": std["returns"],
        "explained_variance": 1.0 - square["missed"] / square["returns"] if square["returns"] > 0 else None,
        "rollout_buffer_pos": float(count),
    }
    if "ratio" in mean:
        found |= {"ratio_std": std["ratio"], "ratio_min": low["ratio"], "ratio_max": high["ratio"]}
    made = {name: value for name, value in found.items() if value is not None}
    return made | describe(np.concatenate([part["advantages"] for part in every]) if len(every) > 1 else every[0]["advantages"])


def _spreads(names: list[str], samples: list[list[Any]]) -> list[dict[str, Any]]:
    """Mean, deviation (`None` for one number), minimum, maximum, and sum of squared distances from the mean, by name.

    All samples are in one array, since a numpy call costs more than the arithmetic here.
    """
    counts = [sum(len(part) for part in sample) for sample in samples]
    if not all(counts):
        raise ValueError("Expected a rollout with responses and tokens, got one without.")
    row = np.concatenate([part for sample in samples for part in sample], dtype=np.float64)
    begins = [0, *accumulate(counts[:-1])]
    means = np.add.reduceat(row, begins) / counts
    low, high = np.minimum.reduceat(row, begins), np.maximum.reduceat(row, begins)
    row -= means.repeat(counts)
    row *= row
    squares = np.add.reduceat(row, begins).tolist()
    stds = [math.sqrt(square / (count - 1)) if count > 1 else None for square, count in zip(squares, counts, strict=True)]
    return [dict(zip(names, found, strict=True)) for found in (means.tolist(), stds, low.tolist(), high.tolist(), squares)]


def pairs_of(parts: Iterable[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """Length and score of each response, of at most 512."""
    pairs: list[tuple[float, float]] = []
    for part in parts:
        pairs += zip(map(float, part["lengths"].tolist()), part["scores"].tolist(), strict=True)
    return pairs[:_MOST_PAIRS]


def responses_of_rollout(local: Mapping[str, Any]) -> ResponseSample:
    """A sample of the responses in this process's part of the rollout."""
    lengths = array_of(local["sequence_lengths"][:MAX_RESPONSES]) + 1
    return sample_responses(array_of(local["responses"][:MAX_RESPONSES]), lengths)


def digests_of_rollout(local: Mapping[str, Any], pad: int | None) -> list[int]:
    """A number for each prompt of this process's part of a PPO rollout, independent of the padding on the left."""
    queries = array_of(local["query_responses"][:, : int(local["context_length"])])
    real = True if pad is None else queries != pad
    return row_digests(queries.astype(np.int64), real, place_factors(queries.shape[1])[::-1])


def texts_of(local: Mapping[str, Any], trainer: Any, count: int) -> list[dict[str, Any]]:
    """The first few prompts and completions of this process, with their scores."""
    tokenizer, length = trainer.processing_class, int(local["context_length"])
    tokens = local["query_responses"][:count].cpu()
    lengths, scores = (local["sequence_lengths"][:count] + 1).tolist(), local["scores"][:count].tolist()
    prompts = tokenizer.batch_decode(tokens[:, :length], skip_special_tokens=True)
    cut = [row[length : length + size] for row, size in zip(tokens, lengths, strict=True)]
    answers = [tokenizer.decode(row, skip_special_tokens=True) for row in cut]
    rows = zip(prompts, answers, scores, strict=True)
    return [{"prompt": prompt, "completion": answer, "reward": score} for prompt, answer, score in rows]


def filled_share(args: Any) -> float:
    """The share of the slots that TRL's PPO fills, by its settings; 1 for other trainers.

    It has a slot for each epoch, minibatch and accumulation step, but fills only one per micro-batch. With two minibatches and
    two accumulation steps, a minibatch has one micro-batch, and every mean is half of what it should be.
    """
    names = ("gradient_accumulation_steps", "local_mini_batch_size", "per_device_train_batch_size")
    slots, minibatch, micro = (int(getattr(args, name, None) or 0) for name in names)
    if not slots or not minibatch or not micro:
        return 1.0
    return min(1.0, -(-minibatch // micro) / slots)


def undiluted(logs: Mapping[str, Any], share: float) -> Mapping[str, Any]:
    """The logs of PPO with means over the filled slots."""
    if share >= 1.0:
        return logs
    return {key: value / share if key in _AVERAGED and isinstance(value, float) else value for key, value in logs.items()}
