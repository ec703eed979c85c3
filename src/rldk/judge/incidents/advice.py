"""What to do about a cause: the setting by its name in the user's own framework, and its value at that time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rldk.core.run_config import RunConfig
from rldk.core.text import short_number
from rldk.judge.incidents.causes import Cause

__all__ = ["Setup", "advice_for"]


@dataclass(frozen=True, slots=True)
class Knob:
    """A setting that a user can change: in plain words, by its name in `RunConfig`, and by the metrics that log it."""

    words: str
    config: str
    metrics: tuple[str, ...] = ()


_KNOBS = {
    "lr": Knob("the learning rate", "learning_rate", ("policy_lr", "lr")),
    "value_lr": Knob("the critic's learning rate", "value_learning_rate", ("value_lr",)),
    "kl_coef": Knob("the KL coefficient", "kl_coef", ("kl_coef",)),
    "epochs": Knob("the number of epochs", "num_iterations"),
    "clip": Knob("the clip range", "clip_range", ("clip_range",)),
    "grad_clip": Knob("the gradient clip", "max_grad_norm"),
    "temperature": Knob("the sampling temperature", "temperature", ("temperature",)),
    "length": Knob("the length limit", "max_response_length", ("max_response_length",)),
    "batch": Knob("the batch size", "batch_size", ("batch_size",)),
}
"""The settings that advice may name."""

_NAMES: dict[str, dict[str, str]] = {
    "trl_ppo": {
        "lr": "PPOConfig.learning_rate", "value_lr": "PPOConfig.learning_rate", "kl_coef": "PPOConfig.kl_coef",
        "epochs": "PPOConfig.num_ppo_epochs", "clip": "PPOConfig.cliprange", "temperature": "PPOConfig.temperature",
        "length": "PPOConfig.response_length", "batch": "PPOConfig.per_device_train_batch_size",
    },
    "trl_grpo": {
        "lr": "GRPOConfig.learning_rate", "kl_coef": "GRPOConfig.beta", "epochs": "GRPOConfig.num_iterations",
        "clip": "GRPOConfig.epsilon", "grad_clip": "GRPOConfig.max_grad_norm", "temperature": "GRPOConfig.temperature",
        "length": "GRPOConfig.max_completion_length", "batch": "GRPOConfig.per_device_train_batch_size",
    },
    "trl_rloo": {
        "lr": "RLOOConfig.learning_rate", "kl_coef": "RLOOConfig.beta", "epochs": "RLOOConfig.num_iterations",
        "clip": "RLOOConfig.epsilon", "grad_clip": "RLOOConfig.max_grad_norm", "temperature": "RLOOConfig.temperature",
        "length": "RLOOConfig.max_completion_length", "batch": "RLOOConfig.per_device_train_batch_size",
    },
    "trl_dpo": {
        "lr": "DPOConfig.learning_rate", "kl_coef": "DPOConfig.beta", "grad_clip": "DPOConfig.max_grad_norm",
        "batch": "DPOConfig.per_device_train_batch_size",
    },
    "trainer": {
        "lr": "--learning_rate", "value_lr": "--critic_learning_rate", "kl_coef": "--kl_coef", "epochs": "--ppo_epochs",
        "clip": "--clip_range", "grad_clip": "--grad_clip", "temperature": "--temperature", "length": "--max_new_tokens",
        "batch": "--batch_size",
    },
    "verl": {
        "lr": "actor_rollout_ref.actor.optim.lr", "value_lr": "critic.optim.lr", "kl_coef": "algorithm.kl_ctrl.kl_coef",
        "epochs": "actor_rollout_ref.actor.ppo_epochs", "clip": "actor_rollout_ref.actor.clip_ratio",
        "grad_clip": "actor_rollout_ref.actor.grad_clip", "temperature": "actor_rollout_ref.rollout.temperature",
        "length": "data.max_response_length", "batch": "data.train_batch_size",
    },
    "openrlhf": {
        "lr": "--actor_learning_rate", "value_lr": "--critic_learning_rate", "kl_coef": "--init_kl_coef",
        "epochs": "--max_epochs", "clip": "--eps_clip", "grad_clip": "--max_norm", "temperature": "--temperature",
        "length": "--generate_max_len", "batch": "--train_batch_size",
    },
}  # fmt: skip
"""The name of each setting in each framework."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What is known about a run besides its log: the framework that wrote it, and its configuration."""

    framework: str | None = None
    config: RunConfig = field(default_factory=RunConfig)

    def name_of(self, knob: str) -> str | None:
        """The name of a setting in the user's program; `None` if it is not known."""
        own = self.config.key_of(_KNOBS[knob].config)
        owner = self.config.owner or ""
        if own is not None and owner.endswith(".py"):
            return f"--{own}"  # a flag of a script
        if own is not None:
            return f"{owner}.{own}" if owner else own
        return _NAMES.get(self.framework or "", {}).get(knob)


def advice_for(cause: Cause, then: Mapping[str, float], good: int | None, setup: Setup) -> str:
    """The cause's advice, with settings by name and value at that time, and the step to go back to."""
    back = "Start again" if good is None else f"Go back to the last checkpoint at or before step {good}"
    return cause.advice.format(back=back, **{knob: _worded(knob, then, setup) for knob in _KNOBS})


def _worded(name: str, then: Mapping[str, float], setup: Setup) -> str:
    """`the learning rate (\\`GRPOConfig.learning_rate\\`, it was 0.03)`, as far as it is known; a value of 0 is left out."""
    knob = _KNOBS[name]
    value = next((then[metric] for metric in knob.metrics if metric in then), setup.config.get(knob.config))
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value and value > 0
    called = setup.name_of(name)
    parts = [*([f"`{called}`"] if called else []), *([f"it was {short_number(value, 3)}"] if known else [])]
    return f"{knob.words} ({', '.join(parts)})" if parts else knob.words
