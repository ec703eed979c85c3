"""What a run is made of: the setting it is trained in, its seed, and what a fault does to it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Batch", "Live", "Plan", "Setting"]


@dataclass(frozen=True)
class Setting:
    """A healthy training: everything but the seed.

    `trl` is the version that records it (`ours` for `trainer/train_ppo.py`), `beta` the KL coefficient, `log_every` the
    interval at which the trainer logs (TRL's PPO logs each update), `more` options of that trainer's own.
    """

    name: str
    trainer: str
    trl: str
    shape: str
    reward: str
    lr: float
    beta: float
    batch: int = 16
    length: int = 16
    updates: int = 100
    log_every: int = 1
    epochs: int = 4
    group: int = 4
    more: dict[str, Any] = field(default_factory=dict)


@dataclass
class Batch:
    """The responses that a reward is asked about."""

    prompts: Sequence[str]
    words: Sequence[list[str]]
    ended: Sequence[bool]
    group: int
    update: int


@dataclass
class Live:
    """A training in progress, as a fault may meddle with it."""

    plan: Plan
    policy: Any
    value: Any = None
    reference: Any = None
    optimizers: list[Any] = field(default_factory=list)
    scheduler: Any = None
    trainer: Any = None
    logs: dict[str, float] = field(default_factory=dict)
    early_weights: dict[str, Any] = field(default_factory=dict)
    foreign: Callable[[], dict[str, Any]] = dict
    """The weights of a model that has nothing to do with the run."""


@dataclass
class Plan:
    """A run before it is trained. A fault changes it; `update` is the update that the training is at."""

    setting: Setting
    seed: int
    onset: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    inject: list[str] = field(default_factory=list)
    reward_edits: list[Callable[[list[Any], Batch], list[Any]]] = field(default_factory=list)
    pair_edits: list[Callable[[list[dict[str, str]]], list[dict[str, str]]]] = field(default_factory=list)
    prompt_edit: Callable[[str, int], str] | None = None
    prompts: int | None = None
    after_build: list[Callable[[Live], None]] = field(default_factory=list)
    every_update: list[Callable[[Live], None]] = field(default_factory=list)
    dtype: str = "float32"
    dropout: float = 0.0
    blocked: list[int] = field(default_factory=list)
    update: int = 0
    chance: random.Random = field(default_factory=random.Random)

    @property
    def on(self) -> bool:
        """Whether the fault has begun."""
        return self.update >= self.onset

    def scores(self, scores: list[Any], batch: Batch) -> list[Any]:
        """The scores of a batch as the fault leaves them."""
        for edit in self.reward_edits if self.on else ():
            scores = edit(scores, batch)
        return scores

    def at_onset(self, act: Callable[[Live], None]) -> None:
        """Do something once, between the update before the onset and the one at it; at 0, before training."""
        if self.onset == 0:
            self.after_build.append(act)
        else:
            self.every_update.append(lambda live: act(live) if live.plan.update == live.plan.onset else None)
