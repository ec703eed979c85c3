"""The faults of simulated runs: a table with one line each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rldk.testing.streams.faults import policy, reward, training
from rldk.testing.streams.forces import Forces, Phase

__all__ = ["FAULTS", "Fault"]

_LATER = 400


@dataclass(frozen=True, slots=True)
class Fault:
    """One way for a run to go wrong.

    `moves` are the metrics that permanently leave the course of the healthy twin, with the direction; `expects` the anomaly types
    of which at least one should be raised; `traits` what is pinned so that the fault can show.
    """

    apply: Callable[[Forces, Phase], None]
    profiles: tuple[str, ...]
    moves: dict[str, str]
    expects: tuple[str, ...]
    onset: int = _LATER
    traits: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.apply.__name__

    @property
    def description(self) -> str:
        """What happens, in one line."""
        return (self.apply.__doc__ or "").strip()

    @property
    def profile(self) -> str:
        """The default profile."""
        return self.profiles[0]


_PPO = ("ppo", "ppo_token")
_RL = ("ppo", "ppo_token", "grpo")
_ANY = ("ppo", "ppo_token", "grpo", "dpo")
_FREE: dict[str, Any] = {"at_cap": False}
_KL: dict[str, Any] = {"kl_logged": True}
_ROOM: dict[str, Any] = {"reward_start": 0.4, "reward_end": 0.7}
_BROAD: dict[str, Any] = {"updates": 4, "active": 0.6, "step_size": 1e-3}
_LEARNT: dict[str, Any] = {"curve": "early", "learn_time": 0.15}
_DENSE: dict[str, Any] = {"zero_grads": False}


def _fault(
    apply: Callable[[Forces, Phase], None], profiles: tuple[str, ...], expects: str, up: str = "", down: str = "",
    onset: int = _LATER, **traits: Any,
) -> Fault:  # fmt: skip
    """A line of the table, names as words of one string."""
    moves = {**dict.fromkeys(up.split(), "up"), **dict.fromkeys(down.split(), "down")}
    return Fault(apply, profiles, moves, tuple(expects.split()), onset, traits)


_TABLE = (
    _fault(policy.policy_collapse, _RL, "policy_collapse", down="reward_mean", **_FREE, **_LEARNT),
    _fault(policy.entropy_collapse, _RL, "entropy_collapse", down="entropy_mean", **_FREE),
    _fault(policy.entropy_explosion, _RL, "entropy_explosion policy_collapse",
           up="entropy_mean rollout_length_mean truncated_frac", down="reward_mean", **_FREE, **_LEARNT),
    _fault(policy.kl_explosion, _RL, "kl_explosion", up="kl_mean grad_norm", **_KL, **_DENSE),
    _fault(policy.kl_spike, _RL, "kl_spike kl_explosion", **_KL, log_every=1, kl_start=0.0),
    _fault(policy.negative_kl, ("ppo",), "negative_kl", down="kl_mean"),
    _fault(policy.clip_saturation, _RL, "clip_saturation", up="clip_frac kl_update", **_BROAD),
    _fault(policy.ratio_explosion, _PPO, "ratio_explosion", up="ratio_max ratio_std kl_update"),
    _fault(policy.learning_rate_too_high, _RL, "learning_rate_too_high kl_explosion policy_collapse entropy_collapse",
           up="lr kl_mean", down="reward_mean entropy_mean", onset=1, **_FREE, **_KL, **_BROAD, kl_start=0.0, warmup=0.0),
    _fault(reward.reward_hacking, _RL, "reward_hacking", up="reward_mean kl_mean rollout_length_mean",
           down="reward_std entropy_mean", **_FREE, **_KL, **_ROOM, held_out=10),
    _fault(reward.reward_saturation, ("grpo", "ppo", "ppo_token"), "reward_saturation reward_hacking", up="reward_mean kl_mean",
           down="reward_std grad_norm", **_ROOM, **_DENSE, **_KL, reward_kind="graded"),
    _fault(reward.dead_reward, _RL, "dead_reward", down="reward_std grad_norm", onset=1),
    _fault(reward.plateau, _RL, "plateau", down="reward_mean", onset=1,
           reward_start=0.3, reward_end=0.8, reward_kind="graded", learn_time=0.2, curve="early"),
    _fault(reward.length_runaway, _RL, "length_runaway eos_starvation",
           up="rollout_length_mean truncated_frac step_time", **_FREE),
    _fault(reward.length_collapse, _RL, "length_collapse", down="rollout_length_mean reward_mean",
           **_FREE, **_LEARNT, length_start=200.0, length_end=200.0, length_cap=600),
    _fault(reward.eos_starvation, _RL, "eos_starvation length_runaway", up="truncated_frac rollout_length_mean", **_FREE),
    _fault(reward.length_bias, _RL, "length_bias", up="length_reward_corr rollout_length_mean", **_FREE, **_ROOM),
    _fault(reward.advantage_bias, _PPO, "advantage_bias_anomaly", whiten=False),
    _fault(reward.preference_degenerate, ("dpo",), "preference_degenerate", up="preference_margin",
           down="loss grad_norm chosen_logp_mean", reward_end=1.0),
    _fault(training.value_divergence, _PPO, "value_divergence", up="value_loss value_grad_norm", down="explained_variance"),
    _fault(training.value_unexplained, _PPO, "value_unexplained", up="value_loss", down="explained_variance"),
    _fault(training.loss_explosion, _ANY, "loss_explosion", up="loss grad_norm", **_DENSE),
    _fault(training.exploding_gradients, _ANY, "exploding_gradient_anomaly", up="grad_norm", **_DENSE),
    _fault(training.vanishing_gradients, _ANY, "vanishing_gradient_anomaly", down="grad_norm", **_DENSE),
    _fault(training.gradient_imbalance, _PPO, "gradient_imbalance_anomaly gradient_balance_anomaly ratio_trend_anomaly",
           up="value_grad_norm grad_norm"),
    _fault(training.nonfinite_metric, _ANY, "nonfinite_metric"),
    _fault(training.controller_stuck, ("ppo",),
           "controller_responsiveness_anomaly coef_adaptation_anomaly target_range_anomaly", up="kl_mean"),
    _fault(training.controller_oscillation, ("ppo",),
           "controller_oscillation_anomaly controller_overshoot_anomaly kl_volatility_anomaly",
           kl_start=1.0, schedule="constant"),
    _fault(training.throughput_drop, _ANY, "throughput_drop", up="step_time", down="tokens_per_second"),
    _fault(training.memory_pressure, _ANY, "memory_pressure", up="gpu_memory_gb memory_usage", memory_gb=45.0),
    _fault(training.train_inference_mismatch, ("grpo", "ppo", "ppo_token"), "train_inference_mismatch",
           up="mismatch_kl", mismatch=2e-3),
    _fault(training.step_regression, _ANY, "step_regression", log_every=1),
)  # fmt: skip

FAULTS: dict[str, Fault] = {fault.name: fault for fault in _TABLE}
"""Every fault by name; the name is that of the anomaly type, if one exists."""
