"""Faults on demand: `--inject FAULT[=VALUE][@STEP]` breaks a run from a step on, to see what it looks like and what detects it.

The training loops know no individual faults. They pass what may be broken (the settings of a step, its scored rollouts) to one
hook, `Faults.__call__`, and continue with what it returns.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from typing import Any

# name: default value, and what it does
FAULTS: dict[str, tuple[float, str]] = {
    "lr": (100.0, "learning rate times VALUE"),
    "critic_lr": (100.0, "learning rate of the critic alone times VALUE"),
    "kl_coef": (0.0, "KL coefficient fixed at VALUE: 0 removes the penalty, 10 keeps the policy at the reference"),
    "constant_reward": (0.0, "every response scores VALUE"),
    "length_reward": (1.0, "the score is VALUE for a response of full length, less for a shorter one"),
    "noisy_reward": (5.0, "noise of spread VALUE is added to the score"),
    "flipped_reward": (1.0, "the score changes its sign"),
    "reward_scale": (1.5, "the score is multiplied by VALUE once more at every step"),
    "nan_reward": (1.0, "every VALUE-th score is NaN"),
    "nan_loss": (1.0, "the loss is NaN"),
    "frozen_value": (1.0, "the value model does not learn"),
    "frozen_policy": (1.0, "the policy does not learn"),
    "clip_range": (1e-4, "clip range of the policy at VALUE; try 100 too"),
    "temperature": (0.05, "sampling temperature at VALUE"),
    "stale_rollouts": (1.0, "the rollouts of that step are used from then on"),
    "stale_engine": (1.0, "the rollout engine keeps the weights that it has; not with --rollout torch"),
    "no_eos": (1.0, "responses cannot end"),
    "slow": (0.5, "every step takes VALUE seconds longer"),
}
SWITCHES = (  # 0 is off
    "flipped_reward", "nan_reward", "nan_loss", "frozen_value", "frozen_policy", "stale_rollouts", "stale_engine", "no_eos",
)  # fmt: skip


@dataclass(frozen=True)
class StepSettings:
    """The settings of a step."""

    step: int  # from 1
    learning_rate: float
    critic_learning_rate: float = 0.0
    kl_coef: float = 0.0
    temperature: float = 1.0
    clip_low: float = 0.2
    clip_high: float = 0.2
    end_tokens: list[int] = field(default_factory=list)
    loss_factor: float = 1.0
    frozen: tuple[str, ...] = ()  # models that are not updated
    sync_engine: bool = True  # whether the rollout engine gets the weights of the policy
    notes: tuple[str, ...] = ()  # on faults that begin with this step


@dataclass(frozen=True)
class Fault:
    name: str
    value: float
    step: int


class Faults:
    """The faults of a run, as a hook for its loop."""

    def __init__(self, given: list[str], allowed: tuple[str, ...] | None = None, longest: int = 1) -> None:
        self.faults = [parse_fault(text, allowed) for text in given]
        self.step, self.longest = 0, longest  # tokens of the longest response
        self.stale: Any = None

    def __call__(self, thing: Any) -> Any:
        """The settings of a step, or its scored rollouts, as the faults leave them."""
        return self._settings(thing) if isinstance(thing, StepSettings) else self._scored(thing)

    def active(self) -> dict[str, float]:
        """The values of the active faults."""
        on = {fault.name: fault.value for fault in reversed(self.faults) if self.step >= fault.step}
        return {name: value for name, value in on.items() if value or name not in SWITCHES}

    def _settings(self, settings: StepSettings) -> StepSettings:
        self.step = settings.step
        on = self.active()
        changed: dict[str, Any] = {
            "learning_rate": settings.learning_rate * on.get("lr", 1.0),
            "critic_learning_rate": settings.critic_learning_rate * on.get("lr", 1.0) * on.get("critic_lr", 1.0),
        }
        changed |= {name: on[name] for name in ("kl_coef", "temperature") if name in on}
        if "clip_range" in on:
            changed |= {"clip_low": on["clip_range"], "clip_high": on["clip_range"]}
        if "no_eos" in on:
            changed["end_tokens"] = []
        if "nan_loss" in on:
            changed["loss_factor"] = math.nan
        changed["sync_engine"] = "stale_engine" not in on
        begun = (fault for fault in self.faults if fault.step == self.step)
        changed["notes"] = tuple(f"injected {fault.name} = {fault.value:g}" for fault in begun)
        changed["frozen"] = tuple(part for fault, part in (("frozen_policy", "actor"), ("frozen_value", "critic")) if fault in on)
        time.sleep(on.get("slow", 0.0))
        return replace(settings, **changed)

    def _scored(self, scored: Any) -> Any:
        if "stale_rollouts" in self.active():  # the rollouts of the step at which they became stale
            scored = self.stale = self.stale or scored
        return replace(scored, score=self._scores(scored.score, scored.roll.mask))

    def _scores(self, score: Any, mask: Any) -> Any:
        import torch

        on = self.active()
        if "constant_reward" in on:
            score = torch.full_like(score, on["constant_reward"])
        if "length_reward" in on:
            score = on["length_reward"] * mask.sum(1).float() / self.longest
        if "noisy_reward" in on:
            score = score + on["noisy_reward"] * torch.randn_like(score)
        if "flipped_reward" in on:
            score = -score
        if "reward_scale" in on:
            since = max(self.step - fault.step + 1 for fault in self.faults if fault.name == "reward_scale")
            score = score * on["reward_scale"] ** since
        if "nan_reward" in on:
            score = score.clone()
            score[:: max(int(on["nan_reward"]), 1)] = math.nan
        return score


def parse_fault(text: str, allowed: tuple[str, ...] | None = None) -> Fault:
    """Read `name`, `name=value`, `name@step` or `name=value@step`."""
    known = {name: FAULTS[name] for name in allowed} if allowed else FAULTS
    head, _, step = text.partition("@")
    name, _, value = head.partition("=")
    if name not in known:
        listed = "\n".join(f"  {fault:18} {about} (VALUE {default:g})" for fault, (default, about) in known.items())
        raise ValueError(f"--inject {text}: there is no fault {name!r}. There are:\n{listed}")
    try:
        fault = Fault(name, float(value) if value else known[name][0], int(step) if step else 1)
    except ValueError:
        raise ValueError(f"--inject {text}: expected {name}, {name}=VALUE or {name}=VALUE@STEP, both numbers.") from None
    if name == "temperature" and not fault.value > 0:
        raise ValueError(f"--inject {text}: expected a temperature above 0.")
    return fault
