"""Probes collect from a trainer what TRL does not log. Each is called through the guard: one that fails is left out."""

from __future__ import annotations

from rldk.integrations.trl.probes.facts import describe_run, describe_settings, kl_coefficient
from rldk.integrations.trl.probes.frames import find_trainer, rollout_of
from rldk.integrations.trl.probes.gradients import GradientProbe
from rldk.integrations.trl.probes.group import completion_lengths, group_statistics, responses_of_group
from rldk.integrations.trl.probes.prompts import digests_of_group, digests_of_rollout
from rldk.integrations.trl.probes.rollout import reduce_rollouts, responses_of_rollout, rollout_sample
from rldk.integrations.trl.probes.weights import WeightProbe

__all__ = [
    "GradientProbe",
    "WeightProbe",
    "completion_lengths",
    "describe_run",
    "describe_settings",
    "digests_of_group",
    "digests_of_rollout",
    "find_trainer",
    "group_statistics",
    "kl_coefficient",
    "reduce_rollouts",
    "responses_of_group",
    "responses_of_rollout",
    "rollout_of",
    "rollout_sample",
]
