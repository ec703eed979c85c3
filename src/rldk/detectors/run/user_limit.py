"""A limit that the user has set."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import ClassVar

from rldk.core.anomaly import Anomaly
from rldk.detectors.base import Clause, Detector, Finding, View

__all__ = ["KL_UNITS", "UserLimit", "limited_metric"]

KL_UNITS = {"kl_per_token": "token", "kl_per_sequence": "sequence"}
"""Limits of the KL that state their unit. A KL that is logged in the other unit is converted by the mean length of a response."""
_WORDS = {"token": "nats per token", "sequence": "nats per response"}
_ADVICE = {
    "kl_mean": "Raise the KL coefficient or lower the learning rate, and read samples: the policy moves away from its reference.",
    "kl_update": "Lower the learning rate or the epochs per batch: one update moves the policy too far.",
    "clip_frac": "Lower the learning rate or the epochs per batch: many tokens reach the clip range.",
    "grad_norm": "Clip gradients (TRL's PPO ignores `max_grad_norm`), or lower the learning rate.",
    "value_loss": "Lower the learning rate of the value function, or scale the reward down.",
    "entropy_mean": "Look at samples: an entropy outside of its bounds is a policy that repeats itself or has become noise.",
    "reward_mean": "Compare samples with those of the best step, and check the reward function and the KL penalty.",
    "memory_usage": "Lower the batch per device or the response length, or recompute activations, before the process is killed.",
    "rollout_length_mean": "Look at samples and at the share of responses that end by themselves; check the length penalty.",
    "tokens_per_second": "Look for other processes on the machine, swapping, and longer responses.",
    "lr": "Check the schedule: warm-up, decay, and the number of steps that it was made for.",
}
_ADVICE |= {"policy_grad_norm": _ADVICE["grad_norm"], "value_grad_norm": _ADVICE["grad_norm"]}
_TOGETHER = "If the limit was meant per token, set `kl_per_token` instead of `kl_mean`."


class UserLimit(Detector):
    """A metric has crossed a limit that the user has set.

    What it catches: a value above the `max` or below the `min` that was given for its metric. It is a hard limit: no
        baseline, no waiting.
    Why it matters: the user knows something about this run that no rule can know.
    When it misfires: never; it fires whenever the limit is crossed.
    What to do: whatever the limit was set for.
    References: none.
    """

    __slots__ = ("highest", "lowest", "metric", "unit")
    type: ClassVar[str] = "user_limit_exceeded"
    family: ClassVar[str] = "run"
    needs: ClassVar[tuple[tuple[str, ...], ...]] = ()
    advice: ClassVar[str] = "The limit is yours: do what it was set for, or change it."
    clear: ClassVar[int] = 1
    rearm: ClassVar[int] = 0
    most_raises: ClassVar[int] = 1 << 30
    clauses: ClassVar = {
        "crossed": Clause("a metric crossed a limit set by the user", "critical", "the user's own number"),
    }  # fmt: skip
    metric: str
    highest: float
    lowest: float
    unit: str

    def __init__(
        self, metric: str = "", highest: float = float("inf"), lowest: float = float("-inf"), severity: str = "warning"
    ) -> None:
        self.unit = KL_UNITS.get(metric, "")
        self.metric, self.highest, self.lowest = "kl_mean" if self.unit else metric, highest, lowest
        super().__init__(severity=severity)

    @property
    def key(self) -> str:
        name = next((name for name, unit in KL_UNITS.items() if unit == self.unit), self.metric)
        return f"{self.type}:{name}"

    def find(self, view: View) -> Sequence[Finding]:
        value = view.event.metrics.get(self.metric)
        if value is None:
            return ()
        if self.unit:
            value = self._converted(view, value)
        if not (value < self.lowest or value > self.highest):
            return ()  # NaN is neither above nor below; `nonfinite_metric` judges it
        limit = self.lowest if value < self.lowest else self.highest
        word = "below" if value < self.lowest else "above"
        unit = _WORDS.get(self.unit or self._logged_unit(view), "")
        said = f"{self.metric} is {value:.4g}{' ' if unit else ''}{unit}, {word} your limit of {limit:g}."
        return (Finding("warning", value, limit, said, {self.metric: value}),)

    def advice_for(self, view: View, finding: Finding) -> str:
        advice = _ADVICE.get(self.metric, self.advice)
        summed = not self.unit and self._logged_unit(view) == "sequence"
        return f"{advice} {_TOGETHER}" if summed and finding.threshold < 1.0 else advice

    def _logged_unit(self, view: View) -> str:
        return view.reductions.get("kl_mean", "") if self.metric == "kl_mean" else ""

    def _converted(self, view: View, value: float) -> float:
        """The KL in the unit of the limit; NaN where the log does not say its own, or no length to convert it by."""
        logged = self._logged_unit(view)
        if logged == self.unit:
            return value
        length = view.event.metrics.get("rollout_length_mean", nan)
        if logged not in _WORDS or not length > 0.0:
            return nan
        return value / length if self.unit == "token" else value * length


def limited_metric(anomaly: Anomaly) -> str:
    """The metric whose limit was crossed; empty for an anomaly of another type. Each limit is a finding of its own."""
    return next(iter(anomaly.evidence), "") if anomaly.type == UserLimit.type else ""
