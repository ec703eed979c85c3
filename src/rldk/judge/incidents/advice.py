"""What to do about a cause: the setting by its name in the user's own framework, and its value at that time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rldk.core.anomaly import Anomaly
from rldk.core.catalog.metric import normalise
from rldk.core.framework_knobs import FRAMEWORK_KNOBS, KNOBS_BY_KEY
from rldk.core.run_config import RunConfig
from rldk.core.text import short_number
from rldk.judge.incidents.causes import Cause
from rldk.runs.run import Run
from rldk.signals.optimizer import RATES, VALUE_RATES
from rldk.signals.series import SeriesByName

__all__ = ["LOGGED", "Setup", "advice_for", "advice_in_general", "logged_knobs", "title_for"]

LOGGED = ("lr", "policy_lr", "value_lr", "kl_coef", "kl_mean", "rollout_length_mean", "batch_size", "clip_range", "temperature")
"""The metrics whose values advice may name."""
_CONTROL = frozenset({"sb3", "cleanrl", "baselines"})
"""Frameworks for control tasks."""
_EPISODIC = re.compile(r"(^|_)(ep|episode|episodic)_(rew|reward|return|len|length)")
"""How names of the reward and the length of an episode begin; language models have responses."""
_OF_EPISODES = {
    "responses": "episodes", "response": "episode", "prompts": "tasks", "prompt": "task", "Read samples": "Watch episodes",
    "read samples": "watch episodes",
}  # fmt: skip
_OF_LANGUAGE = re.compile("|".join(rf"\b{words}\b" for words in _OF_EPISODES))


@dataclass(frozen=True, slots=True)
class Knob:
    """A setting that a user can change: in plain words, by its name in `RunConfig`, and by the metrics that log it.

    What is logged of one that is `scheduled` is not the setting, but what a schedule has made of it.
    """

    words: str
    config: str
    metrics: tuple[str, ...] = ()
    scheduled: bool = False


_KNOBS = {
    "lr": Knob("the learning rate", "learning_rate", RATES, scheduled=True),
    "value_lr": Knob("the critic's learning rate", "value_learning_rate", ("value_lr",), scheduled=True),
    "kl_coef": Knob("the KL coefficient", "kl_coef", ("kl_coef",)),
    "epochs": Knob("the number of epochs", "num_iterations"),
    "clip": Knob("the clip range", "clip_range", ("clip_range",)),
    "grad_clip": Knob("the gradient clip", "max_grad_norm"),
    "temperature": Knob("the sampling temperature", "temperature", ("temperature",)),
    "length": Knob("the length limit", "max_response_length", ("max_response_length",)),
    "batch": Knob("the batch size", "batch_size", ("batch_size",)),
}
"""The settings that advice may name."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What is known about a run besides its events: the framework that wrote them, its configuration, and the keys of its log."""

    framework: str | None = None
    config: RunConfig = field(default_factory=RunConfig)
    keys: frozenset[str] = frozenset()

    @classmethod
    def of(cls, run: Run) -> Setup:
        """What is known about a run that was read."""
        return cls(run.framework, run.config, frozenset(run.coverage.metrics.values()))

    @property
    def is_control(self) -> bool:
        """Whether it is a control task: by its framework, or by the names of its metrics."""
        return self.framework in _CONTROL or any(_EPISODIC.search(normalise(key)) for key in self.keys)

    def name_of(self, knob: str) -> str | None:
        """The name of a setting in the user's program; `None` if it is not known."""
        name = _KNOBS[knob].config
        by_key = next((KNOBS_BY_KEY[key][name] for key in self.keys if name in KNOBS_BY_KEY.get(key, {})), None)
        if by_key is not None:
            return by_key
        own = self.config.key_of(name)
        owner = self.config.owner or ""
        if own is not None and owner.endswith(".py"):
            return f"--{own}"  # a flag of a script
        if own is not None:
            return f"{owner}.{own}" if owner else own
        return FRAMEWORK_KNOBS.get(self.framework or "", {}).get(name)


def logged_knobs(series: SeriesByName) -> dict[str, float]:
    """The settings as they were logged last; of a learning rate that was higher, also the highest so far (`lr_highest`)."""
    found = {name: series[name].last for name in LOGGED if name in series and series[name].n}
    for name in dict.fromkeys((*RATES, *VALUE_RATES)):
        if name in found and (highest := max(series[name].first, series[name].high)) > found[name]:
            found[f"{name}_highest"] = highest
    return found


def advice_for(cause: Cause, first: Anomaly, good: int | None, setup: Setup) -> str:
    """The cause's advice, with settings by name and value when the first anomaly came, and the step to go back to."""
    text, then = cause.advice_after.get(first.type, cause.advice), first.knobs
    if setup.is_control:
        text = cause.in_control or _of_episodes(text)
    back = "Start again" if good is None else f"Go back to the last checkpoint at or before step {good}"
    return text.format(back=back, **{knob: _worded(knob, then, setup) for knob in _KNOBS})


def title_for(cause: Cause, setup: Setup) -> str:
    """The title of a cause, in the words of the task."""
    return _of_episodes(cause.title) if setup.is_control else cause.title


def _of_episodes(text: str) -> str:
    """What is said of prompts and responses, said of a control task."""
    return _OF_LANGUAGE.sub(lambda found: _OF_EPISODES[found[0]], text)


def advice_in_general(text: str) -> str:
    """The advice of a cause for no run in particular: settings in plain words, and no step to go back to."""
    return text.format(back="Go back to the last good checkpoint", **{name: knob.words for name, knob in _KNOBS.items()})


def _worded(name: str, then: Mapping[str, float], setup: Setup) -> str:
    """`the learning rate (\\`GRPOConfig.learning_rate\\`, it was 0.03)`, as far as it is known; a value of 0 is left out."""
    knob = _KNOBS[name]
    called = setup.name_of(name)
    parts = [*([f"`{called}`"] if called else []), *_values(knob, then, setup)]
    return f"{knob.words} ({', '.join(parts)})" if parts else knob.words


def _values(knob: Knob, then: Mapping[str, float], setup: Setup) -> list[str]:
    """What a setting was at that time. For one that is scheduled, first what it was set to, or else the highest value so far."""
    metric = next((metric for metric in knob.metrics if metric in then), "")
    given, now = _shown(setup.config.get(knob.config)), _shown(then.get(metric))
    highest = _shown(then.get(f"{metric}_highest"))
    value = given or highest or now if knob.scheduled else now or given
    if not knob.scheduled or not now or value == now:
        return [f"it was {value}"] if value else []
    return [f"set to {given}" if given else f"it was {highest} at most", f"{now} at that step"]


def _shown(value: Any) -> str:
    """A value as advice gives it; empty where it is not known, or not a positive number."""
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value and value > 0
    return short_number(value, 3) if known else ""
