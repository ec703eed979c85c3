"""Faults in real TRL trainings of a tiny model, and the types of anomaly that name each of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trl_tiny
from transformers import TrainerCallback

from rldk.core.anomaly import Anomaly
from rldk.integrations.trl import RLDKCallback
from rldk.monitor import TrainingStopped

_TOO_FAST = (
    "learning_rate_too_high", "kl_explosion", "kl_spike", "policy_collapse", "entropy_collapse", "entropy_explosion",
    "ratio_explosion", "exploding_gradient_anomaly", "clip_saturation", "loss_explosion", "value_divergence",
)  # fmt: skip
_UNHELD = ("kl_penalty_off", "kl_explosion", "kl_trend_anomaly")
FAULTS: dict[str, tuple[str, ...]] = {
    "none": (),
    "lr_x100": _TOO_FAST,
    "kl_coef_0": _UNHELD,
    "kl_coef_tiny": _UNHELD,
    "constant_reward": ("dead_reward",),
    "length_reward": ("length_runaway", "length_bias", "eos_starvation"),
    "nan_reward": ("nonfinite_gradient", "nonfinite_metric", "missing_reward"),
    "lr_jump": _TOO_FAST,
}
"""Each fault, and the types that are right for it."""

LEARNING_RATE = 1e-3
BETA = 0.2  # what holds GRPO in this world at 0.3 nats a token, while it learns


class LearningRateJump(TrainerCallback):  # type: ignore[misc]
    """Multiplies the learning rate by 100 at a step, as a wrong schedule would."""

    def __init__(self, step: int) -> None:
        self.step, self.done = step, False

    def _jump(self, state: Any, optimizer: Any, scheduler: Any) -> None:
        if state.global_step >= self.step and not self.done:
            self.done = True
            scheduler.base_lrs = [100.0 * rate for rate in scheduler.base_lrs]
            for group in optimizer.param_groups:
                group["lr"] *= 100.0

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self._jump(state, given["optimizer"], given["lr_scheduler"])


class PenaltyLost(TrainerCallback):  # type: ignore[misc]
    """Takes the KL penalty out of GRPO at a step, as a wrong schedule would.

    From the start on, TRL would neither load a reference nor compute a KL: there is nothing to see then, and it is a choice.
    """

    trainer: Any = None

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        if state.global_step >= self.step:
            self.trainer.beta = 0.0


class GroupReward:
    """GRPO's reward by rule, with the same faults as `trl_tiny.RuleReward`."""

    def __init__(self, kind: str = "good", onset: int = 0) -> None:
        self.kind, self.onset, self.calls = kind, onset, 0
        self.__name__ = "rule"

    def __call__(self, completions: list[Any], **_: Any) -> list[float | None]:
        self.calls += 1
        if self.kind == "constant":
            return [0.5] * len(completions)
        if self.kind == "length":
            return [0.1 * len(str(text).split()) for text in completions]
        if self.kind == "nan" and self.calls > self.onset:
            return [None] * len(completions)
        return list(trl_tiny.good_words(completions))


@dataclass
class Found:
    """What was raised in a training."""

    fault: str
    onset: int | None
    anomalies: list[Anomaly]
    alerts: list[dict[str, Any]]
    folder: Path
    callback: RLDKCallback
    trainer: Any = None
    error: BaseException | None = None

    def caught(self) -> dict[str, Any] | None:
        """The first alert of a type that names the fault."""
        return next((one for one in self.alerts if one["type"] in FAULTS[self.fault]), None)

    def first_critical(self) -> dict[str, Any] | None:
        return next((one for one in self.alerts if one["severity"] == "critical"), None)


def run(kind: str, fault: str, out: Path, seed: int = 0, updates: int = 60, **options: Any) -> Found:
    """Train with a fault; options beyond those of `RLDKCallback` are the trainer's."""
    own = {name: options.pop(name) for name in ("stop_on", "confirm", "dry_run", "skip_nonfinite_steps") if name in options}
    callback = RLDKCallback(out / "rldk", run_id="run", terminal=False, enable_resource_monitoring=False, **own)
    late = ("nan_reward", "lr_jump", *(("kl_coef_0",) if kind != "ppo" else ()))
    onset = updates // 2 if fault in late else None
    callbacks: list[Any] = [callback]
    reward = {"constant_reward": "constant", "length_reward": "length", "nan_reward": "nan"}.get(fault, "good")
    given: dict[str, Any] = {"learning_rate": LEARNING_RATE, "lr_scheduler_type": "constant", **options}
    if fault == "lr_x100":
        given["learning_rate"] *= 100
    if fault == "lr_jump":
        callbacks.append(LearningRateJump(updates // 2))
    if kind == "ppo":
        given |= {"kl_coef": {"kl_coef_0": 0.0, "kl_coef_tiny": 1e-6}[fault]} if fault.startswith("kl_coef") else {}
        trainer = trl_tiny.ppo_trainer(
            out / "training", callbacks, updates, seed, trl_tiny.RuleReward(reward, onset or 0), **given
        )  # fmt: skip
    else:
        given = {"beta": 1e-6 if fault == "kl_coef_tiny" else BETA, **given}
        lost = PenaltyLost(updates // 2)
        callbacks += [lost] if fault == "kl_coef_0" else []
        trainer = trl_tiny.group_trainer(
            kind.upper(), out / "training", callbacks, updates, seed, GroupReward(reward, onset or 0), **given
        )  # fmt: skip
        lost.trainer = trainer
    trl_tiny.settle()
    error: BaseException | None = None
    try:
        trainer.train()
    except (RuntimeError, ValueError, TrainingStopped) as raised:  # a NaN ends in a crash of the next generation
        error = raised
    if callback.monitor is not None:
        callback.monitor.close()
    alerts = json.loads((out / "rldk" / "run_alerts.json").read_text())
    return Found(fault, onset, list(callback.anomalies), alerts, out / "rldk", callback, trainer, error)
