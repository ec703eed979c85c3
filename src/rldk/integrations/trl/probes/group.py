"""The last batch of completions of GRPO and RLOO: rewards by function, advantages, texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite, nan
from typing import Any

from rldk.functional.advantages import describe
from rldk.functional.preflight import digest
from rldk.functional.responses import MAX_RESPONSES, ResponseSample, sample_responses
from rldk.integrations.trl.probes.stack import array_of

__all__ = ["completion_lengths", "digests_of_group", "group_statistics", "responses_of_group"]


def group_statistics(trainer: Any) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """The metrics of the last batch, and its completions with prompt, reward and advantage.

    The trainers keep this batch for their own tables (`_logs`), gathered from all processes already.
    """
    held = getattr(trainer, "_logs", None)
    if not isinstance(held, Mapping) or not held.get("advantages"):
        return {}, []
    advantages = [float(value) for value in held["advantages"]]
    rewards = _total(held.get("rewards") or {}, getattr(trainer, "reward_weights", None), len(advantages))
    found = describe(advantages)
    known = [value for value in rewards if isfinite(value)]
    if known:
        found |= {"reward_min": min(known), "reward_max": max(known)}
    if rewards:
        missing = len(rewards) - len(known)
        found |= {"reward_missing_frac": missing / len(rewards)} | ({"nonfinite_count": float(missing)} if missing else {})
    texts = list(zip(held.get("prompt") or (), held.get("completion") or (), rewards, advantages, strict=False))
    records = [
        {"prompt": str(prompt), "completion": str(completion), "reward": reward, "advantage": advantage}
        for prompt, completion, reward, advantage in texts
    ]
    return found, records


def completion_lengths(trainer: Any) -> list[int]:
    """The tokens of each completion of this process's last batch, by the masks that the trainer trains with."""
    return [int(length) for part in _parts(trainer) for length in part["completion_mask"].sum(1).tolist()]


def responses_of_group(trainer: Any) -> ResponseSample:
    """A sample of the responses in this process's last batch, over all groups."""
    digests: list[int] = []
    repetition: list[float] = []
    for part in _parts(trainer):
        if len(digests) < MAX_RESPONSES:
            tokens, mask = (array_of(part[name][:MAX_RESPONSES]) for name in ("completion_ids", "completion_mask"))
            lengths = mask.sum(1)
            lengths[lengths == 0] = mask.shape[1]  # cut off at the limit, and masked by a setting
            found = sample_responses(tokens, lengths)
            digests += found[0]
            repetition += found[1]
    return digests, repetition


def digests_of_group(trainer: Any) -> list[int]:
    """A number for each prompt of the last batch of GRPO and RLOO, in all processes."""
    held = getattr(trainer, "_logs", None)
    found = held.get("prompt") if isinstance(held, Mapping) else None
    return [digest(str(prompt).encode("utf-8", "replace")) for prompt in found or ()]


def _parts(trainer: Any) -> list[Mapping[str, Any]]:
    """The batches of the trainer's last generation."""
    held = getattr(trainer, "_buffered_inputs", None) or ()
    return [part for part in held if isinstance(part, Mapping) and "completion_mask" in part]


def _total(by_function: Mapping[str, Sequence[float]], weights: Any, count: int) -> list[float]:
    """The reward of each completion: the weighted sum over the functions that gave it one; NaN where none did."""
    functions = [list(values) for values in by_function.values() if len(values) == count]
    if not functions:
        return []
    shares = [float(weight) for weight in weights] if weights is not None else [1.0] * len(functions)
    if len(shares) != len(functions):
        shares = [1.0] * len(functions)
    totals = []
    for row in zip(*functions, strict=True):
        given = [share * value for share, value in zip(shares, row, strict=True) if value is not None and value == value]
        totals.append(float(sum(given)) if given else nan)
    return totals
