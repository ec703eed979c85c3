"""slime: its official hook for logging rollouts, with the samples.

    --custom-rollout-log-function-path rldk.integrations.slime.log_rollout

It sees the rollouts: rewards, lengths, truncation, and slime's extra metrics. Losses, KL and gradients are logged by the trainer
process, through W&B or TensorBoard: `rldk.integrations.ray_worker` with `RLDK_ATTACH=wandb` sees those. slime is not on PyPI:
this is tested against the documented interface (0.3), not against the package.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from rldk.core.jsonio import to_number
from rldk.integrations.attach import options_from_environment
from rldk.integrations.rows import RowLog

__all__ = ["log_rollout"]

_logs: list[RowLog] = []


def log_rollout(
    rollout_id: int, args: Any, samples: Iterable[Any], rollout_extra_metrics: Mapping[str, Any] | None, rollout_time: float
) -> bool:
    """Take a rollout. Returns false, so that slime logs it as well."""
    if not _logs:
        _logs.append(RowLog("slime", whole_rows=True, **options_from_environment()))
    log = _logs[0]
    row = log.monitor.guard.attempt("a rollout", _row, list(_flat(samples)), getattr(args, "reward_key", None)) or {}
    log.log({**(rollout_extra_metrics or {}), **row, "perf/rollout_time": rollout_time}, rollout_id)
    return False


def _flat(samples: Iterable[Any]) -> Iterable[Any]:
    """The samples, without their groups."""
    for one in samples:
        if isinstance(one, (list, tuple)):
            yield from _flat(one)
        else:
            yield one


def _row(samples: list[Any], reward_key: str | None) -> dict[str, float]:
    """The statistics that slime computes of a rollout, under slime's keys."""
    rewards = [reward for sample in samples if (reward := to_number(_reward(sample, reward_key))) is not None]
    lengths = [float(sample.response_length) for sample in samples if getattr(sample, "response_length", None) is not None]
    cut = [str(getattr(sample.status, "value", sample.status)) == "truncated" for sample in samples if hasattr(sample, "status")]
    found: dict[str, float] = {}
    if rewards:
        found["rollout/raw_reward"] = statistics.fmean(rewards) if all(map(math.isfinite, rewards)) else math.nan
    if lengths:
        found["rollout/response_len/mean"], found["rollout/response_len/max"] = statistics.fmean(lengths), max(lengths)
    if cut:
        found["rollout/truncated_ratio"] = statistics.fmean(cut)
    return found


def _reward(sample: Any, key: str | None) -> Any:
    reward = getattr(sample, "reward", None)
    return reward.get(key) if isinstance(reward, Mapping) and key else reward
