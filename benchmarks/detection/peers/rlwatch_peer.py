"""rlwatch: seven streaming detectors whose limits are fixed or relative to a baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rldk.core.event import Event
from rldk.judge.trackers.length_bias import length_and_reward

from .alarm import Alarm
from .metric_names import rows_of
from .piped import PipedPeer

__all__ = ["NAMES", "TUNED", "RlwatchPeer"]

NAMES = {
    "entropy": ("entropy_mean",),
    "kl_divergence": ("kl_mean", "kl_update"),
    "reward_mean": ("reward_mean", "reward_after_kl", "rollout_mean_reward", "accuracy"),
    "reward_std": ("reward_std", "reward_group_std", "rollout_std_reward"),
    "advantage_std": ("advantage_std",),
    "loss": ("loss", "policy_loss", "dpo_loss"),
    "grad_norm": ("grad_norm", "policy_grad_norm"),
}
"""Argument of rlwatch's `log_step` -> the metrics that fit, in the order of its own TRL callback. Its other arguments,
`learning_rate` and `clip_fraction`, are stored and never judged."""

TUNED = {
    "entropy_collapse": {"threshold": 0.5},
    "kl_explosion": {"sigma_multiplier": 5.0},
    "gradient_norm_spike": {"sigma_multiplier": 5.0},
}
"""The settings that its documentation advises against false alarms, over its defaults."""


class RlwatchPeer(PipedPeer):
    """rlwatch with `TUNED`, the best of the configurations in its documentation.

    They were compared on the simulated runs of `rldk.testing.streams`, by the share of faulty runs with an alarm after the onset
    minus the share of healthy runs with any. In runs of 1000 rows `TUNED` finds as many faults as the defaults (95 %) with two
    thirds of the alarms in healthy runs. In runs of 100 rows it finds fewer (81 % against 92 %), with half of those alarms, and
    a critical one in 30 % of healthy runs instead of 72 %. A frozen baseline for KL finds hardly more, with half as many alarms
    again in healthy runs; the settings of its tutorial for short runs find less than `TUNED` and alarm more.

    The rewards of single responses are passed where events hold them (`response_data`), for its dip test; the package for
    that test is installed with it. Its KL limit is relative, so that the unit of KL does not matter. It has settings for
    frameworks, which say where metrics come from and change no limit. Its offline command `rlwatch diagnose` prints the alerts
    that were raised live, so there is only the live API to ask.
    """

    name: ClassVar[str] = "rlwatch"
    requirement: ClassVar[str] = "rlwatch[monitoring]"
    child: ClassVar[str] = "rlwatch_child.py"

    def __init__(self, config: Mapping[str, Any] = TUNED) -> None:
        super().__init__()
        self.config = dict(config)

    def ask(self, events: Sequence[Event], framework: str, reductions: Mapping[str, str] | None = None) -> list[Alarm]:
        """What it would have sent, with its own cooldown and its limit of alerts per run."""
        rewards = [_rewards(event) for event in events]
        return [tuple(alarm) for alarm in self.request(rows=rows_of(events, NAMES), config=self.config, rewards=rewards)]

    def step_times(self, events: Sequence[Event]) -> list[float]:
        """Microseconds of processor time per step of `log_step`, for each block of 50 steps."""
        times: list[float] = self.request(rows=rows_of(events, NAMES), config=self.config, speed=True)
        return times


def _rewards(event: Event) -> list[float] | None:
    found = [reward for _, reward in length_and_reward(event.extra.get("response_data") or ()) if math.isfinite(reward)]
    return found or None
