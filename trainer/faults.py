"""Faults on demand: `--inject FAULT[=VALUE][@STEP]` breaks a run from a step on, to see what it looks like and who notices.

A fault is only read here; the line of the training loop that it changes asks for it by name.
"""

from __future__ import annotations

from dataclasses import dataclass

# name: value where none is given, and what it does
FAULTS: dict[str, tuple[float, str]] = {
    "lr": (100.0, "learning rate times VALUE"),
    "critic_lr": (100.0, "learning rate of the critic alone times VALUE"),
    "kl_coef": (0.0, "KL coefficient fixed at VALUE: 0 lets the policy go anywhere, 10 ties it down"),
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
    "stale_rollouts": (1.0, "the rollouts of that step are used for ever"),
    "no_eos": (1.0, "responses cannot end"),
    "slow": (0.5, "every step takes VALUE seconds longer"),
}


@dataclass(frozen=True)
class Fault:
    name: str
    value: float
    step: int


class Faults:
    """The faults of a run. `faults("lr")` is the value while the fault is on, and `None` otherwise."""

    def __init__(self, given: list[str], allowed: tuple[str, ...] | None = None) -> None:
        self.faults = [parse_fault(text, allowed) for text in given]
        self.step = 0

    def at(self, step: int) -> list[str]:
        """Say which step it is; the notes for those that begin with it."""
        self.step = step
        return [f"injected {fault.name} = {fault.value:g}" for fault in self.faults if fault.step == step]

    def __call__(self, name: str) -> float | None:
        return next((fault.value for fault in self.faults if fault.name == name and self.step >= fault.step), None)

    def since(self, name: str) -> int:
        """For how many steps a fault has been on, this one included; 0 before."""
        return max((self.step - fault.step + 1 for fault in self.faults if fault.name == name), default=0)


def parse_fault(text: str, allowed: tuple[str, ...] | None = None) -> Fault:
    """Read `name`, `name=value`, `name@step` or `name=value@step`."""
    known = {name: FAULTS[name] for name in allowed} if allowed else FAULTS
    head, _, step = text.partition("@")
    name, _, value = head.partition("=")
    if name not in known:
        listed = "\n".join(f"  {fault:18} {about} (VALUE {default:g})" for fault, (default, about) in known.items())
        raise ValueError(f"--inject {text}: there is no fault {name!r}. There are:\n{listed}")
    try:
        return Fault(name, float(value) if value else known[name][0], int(step) if step else 1)
    except ValueError:
        raise ValueError(f"--inject {text}: expected {name}, {name}=VALUE or {name}=VALUE@STEP, both numbers.") from None
