"""The statistics of a PPO rollout that TRL does not log."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from rldk.functional.sample import describe

__all__ = ["pairs_of", "reduce_rollouts", "rollout_sample", "texts_of", "thinned"]

_TENSORS = (
    "scores", "sequence_lengths", "contain_eos_token", "kl", "rewards", "returns", "values", "padding_mask", "padding_mask_p1",
)  # fmt: skip
_MOST_TOKENS = 65536
_MOST_PAIRS = 512


def rollout_sample(local: Mapping[str, Any]) -> dict[str, Any]:
    """One process's part of a rollout as arrays: by response what is of a response, by token what is of a token."""
    held = {name: local[name].detach().cpu() for name in _TENSORS}
    arrays = {name: (tensor.float() if tensor.is_floating_point() else tensor).numpy() for name, tensor in held.items()}
    real, valued = ~arrays["padding_mask"], ~arrays["padding_mask_p1"]
    found = {
        "scores": arrays["scores"],
        "lengths": arrays["sequence_lengths"] + 1,
        "ended": arrays["contain_eos_token"],
        "kl": arrays["kl"].sum(1),
        "rewards": arrays["rewards"].sum(1),
        "advantages": thinned((arrays["returns"] - arrays["values"])[real]),
        "values": thinned(arrays["values"][valued]),
        "returns": thinned(arrays["returns"][valued]),
    }
    return {name: array.reshape(-1).astype("float32") for name, array in found.items()}  # a copy: no tensor is kept alive


def thinned(array: Any) -> Any:
    """At most 65536 of these numbers, taken at even distances."""
    return array[:: -(-len(array) // _MOST_TOKENS)] if len(array) > _MOST_TOKENS else array


def reduce_rollouts(parts: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """The metrics of the whole rollout from the parts of all processes; what is not finite stays so, without a warning."""
    import numpy as np

    every = [part for part in parts if part]
    if not every:
        return {}
    with np.errstate(all="ignore"):
        return _reduced(every)


def _reduced(every: list[Mapping[str, Any]]) -> dict[str, float]:
    import numpy as np

    names = [name for name in every[0] if all(name in part for part in every)]
    whole = {name: np.concatenate([part[name] for part in every]).astype(np.float64) for name in names}
    scores, lengths, values, returns = whole["scores"], whole["lengths"], whole["values"], whole["returns"]
    ended = _mean(whole["ended"])
    found = {
        **_spread("reward", scores),
        **(_spread("ratio", whole["ratio"]) if len(whole.get("ratio", ())) else {}),
        "reward_missing_frac": 1.0 - np.isfinite(scores).sum() / len(scores),
        "rollout_mean_reward": _mean(whole["rewards"]),
        "rollout_std_reward": _std(whole["rewards"]),
        "rollout_length_mean": _mean(lengths),
        "rollout_length_std": _std(lengths),
        "rollout_length_min": lengths.min(),
        "rollout_length_max": lengths.max(),
        "eos_frac": ended,
        "truncated_frac": 1.0 - ended,
        "kl_std": _std(whole["kl"]),
        "kl_max": whole["kl"].max(),
        "value_mean": _mean(values),
        "value_std": _std(values),
        "value_min": values.min(),
        "value_max": values.max(),
        "return_mean": _mean(returns),
        "return_std": _std(returns),
        "explained_variance": _explained(values, returns),
        "rollout_buffer_pos": float(len(scores)),
    }
    made = {name: float(value) for name, value in found.items() if value is not None}
    return made | describe(whole["advantages"])


def _spread(name: str, values: Any) -> dict[str, float]:
    return {f"{name}_std": _std(values), f"{name}_min": values.min(), f"{name}_max": values.max()}


def _mean(values: Any) -> Any:
    return values.sum() / len(values)


def _std(values: Any) -> Any:
    """The spread of a sample; `None` of a single value, which has none."""
    return math.sqrt(_square(values) / (len(values) - 1)) if len(values) > 1 else None


def _square(values: Any) -> float:
    """The sum of squared distances from the mean, in two calls of numpy where its `var` takes a dozen."""
    away = values - _mean(values)
    return float(away.dot(away))


def _explained(values: Any, returns: Any) -> Any:
    """The share of the returns' variance that the values explain; `None` where the returns do not vary."""
    spread = _square(returns)
    return 1.0 - _square(returns - values) / spread if spread > 0 else None


def pairs_of(parts: Iterable[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """Length and score of each response, of at most 512."""
    pairs: list[tuple[float, float]] = []
    for part in parts:
        pairs += zip(part["lengths"].tolist(), part["scores"].tolist(), strict=True)
    return pairs[:_MOST_PAIRS]


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
