"""Probes collect from a trainer what TRL does not log. Each is called through the guard: one that fails is disabled."""

from __future__ import annotations

from rldk.integrations.trl.probes.ending import EndingProbe
from rldk.integrations.trl.probes.group import completion_lengths, digests_of_group, group_statistics, responses_of_group
from rldk.integrations.trl.probes.memory import memory_use, savings
from rldk.integrations.trl.probes.models import ModelParts
from rldk.integrations.trl.probes.optimizer import GradientProbe, WeightProbe
from rldk.integrations.trl.probes.rollout import (
    digests_of_rollout,
    pairs_of,
    reduce_rollouts,
    responses_of_rollout,
    rollout_sample,
    texts_of,
    thinned,
)
from rldk.integrations.trl.probes.settings import describe_run, describe_settings, end_tokens, is_ppo, kl_coefficient
from rldk.integrations.trl.probes.slots import filled_share, undiluted
from rldk.integrations.trl.probes.stack import find_trainer, rollout_of

__all__ = [
    "EndingProbe",
    "GradientProbe",
    "ModelParts",
    "WeightProbe",
    "completion_lengths",
    "describe_run",
    "describe_settings",
    "digests_of_group",
    "digests_of_rollout",
    "end_tokens",
    "filled_share",
    "find_trainer",
    "group_statistics",
    "is_ppo",
    "kl_coefficient",
    "memory_use",
    "pairs_of",
    "reduce_rollouts",
    "responses_of_group",
    "responses_of_rollout",
    "rollout_of",
    "rollout_sample",
    "savings",
    "texts_of",
    "thinned",
    "undiluted",
]
