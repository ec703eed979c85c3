"""The typed records of one step; an unknown number is NaN, an unknown text is empty, never `None` and never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from math import nan
from typing import Any, TypeVar

__all__ = ["CheckpointMetrics", "PPOMetrics", "RLDKMetrics", "fill"]

Record = TypeVar("Record")


@dataclass(slots=True)
class _Record:
    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


@dataclass(slots=True)
class _PPOFields(_Record):
    """The fields of one step of PPO."""

    reward_mean: float = nan
    reward_std: float = nan
    reward_min: float = nan
    reward_max: float = nan
    kl_mean: float = nan
    kl_std: float = nan
    entropy_mean: float = nan
    clip_frac: float = nan
    value_loss: float = nan
    policy_loss: float = nan
    value_policy_loss: float = nan
    policy_grad_norm: float = nan
    value_grad_norm: float = nan
    value_mean: float = nan
    value_std: float = nan
    rollout_length_mean: float = nan
    rollout_length_std: float = nan
    advantage_mean: float = nan
    advantage_std: float = nan
    kl_coef: float = nan
    target_kl: float = nan
    advantage_normalized: float = nan
    clip_range: float = nan
    clip_range_value: float = nan
    batch_size: float = nan
    global_step: int = 0


@dataclass(slots=True)
class PPOMetrics(_PPOFields):
    """The metrics of a step by which PPO is judged, and values derived from them.

    `reward_per_token` is the mean reward for each token of a response, and `reward_per_token_trend` its relative change over
    the last twenty steps. `collapse_risk` and `hacking_risk` are in [0, 1]; NaN until there is evidence.
    """

    reward_per_token: float = nan
    reward_per_token_trend: float = nan
    collapse_risk: float = nan
    hacking_risk: float = nan


@dataclass(slots=True)
class RLDKMetrics(_PPOFields):
    """Everything known about one step: the 40 fields of PPO, and those of any training."""

    model_type: str = ""
    vocab_size: float = nan
    tokenizer_vocab_size: float = nan
    dataset_size: float = nan
    rollout_buffer_size: float = nan
    rollout_buffer_pos: float = nan
    rollout_mean_reward: float = nan
    rollout_std_reward: float = nan
    policy_total_params: float = nan
    policy_trainable_params: float = nan
    policy_lr: float = nan
    value_total_params: float = nan
    value_trainable_params: float = nan
    value_lr: float = nan
    loss: float = nan
    lr: float = nan
    grad_norm: float = nan
    epoch: float = nan
    step_time: float = nan
    tokens_per_second: float = nan
    cpu_percent: float = nan
    cpu_memory_gb: float = nan
    gpu_memory_gb: float = nan
    gpu_utilization: float = nan
    memory_usage: float = nan
    training_stability: float = nan
    convergence_quality: float = nan
    overall_health: float = nan
    wall_time: float = nan
    run_id: str = ""

    @property
    def learning_rate(self) -> float:
        """`lr` by its long name."""
        return self.lr

    @property
    def gradient_norm(self) -> float:
        """`grad_norm` by its long name."""
        return self.grad_norm


@dataclass(slots=True)
class CheckpointMetrics(_Record):
    """How one checkpoint compares with the previous one and the first: a row of `R_checkpoint_summary.csv`."""

    step: int = 0
    checkpoint: str = ""
    kind: str = ""
    verdict: str = ""
    health_score: float = nan
    parameters: float = nan
    norm: float = nan
    norm_change: float = nan
    norm_change_from_start: float = nan
    norm_trend: float = nan
    update_ratio: float = nan
    drift_from_start: float = nan
    changed_share: float = nan
    largest_weight: float = nan
    nonfinite_parameters: float = nan
    dead_tensors: float = nan
    unchanged_tensors: float = nan
    most_moved_layer: str = ""
    most_moved_ratio: float = nan
    gradient_norm: float = nan
    weakest_gradient_layer: str = ""
    weakest_gradient_norm: float = nan
    strongest_gradient_layer: str = ""
    strongest_gradient_norm: float = nan
    training_memory_gb: float = nan
    memory_advice: str = ""
    problems: str = ""


def fill(kind: type[Record], *sources: Mapping[str, Any]) -> Record:
    """A record filled from the mappings: each field has the first value found, in the field's own type."""
    types = _types(kind)  # type: ignore[arg-type]
    given: dict[str, Any] = {}
    for source in reversed(sources):
        for name in types.keys() & source.keys():
            if (value := source[name]) is not None:
                given[name] = value if type(value) is types[name] else types[name](value)
    return kind(**given)


@cache
def _types(kind: Any) -> dict[str, type]:
    """The fields of a record with their types."""
    empty = kind()
    return {one.name: type(getattr(empty, one.name)) for one in fields(empty)}
