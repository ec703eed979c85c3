"""The trackers of a run together: those that are switched on take each event, and give their records."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import Any

from rldk.core.event import Event
from rldk.forensics.advantage_statistics_metrics import AdvantageStatisticsMetrics
from rldk.forensics.advantage_statistics_tracker import AdvantageStatisticsTracker
from rldk.forensics.gradient_norms_analyzer import GradientNormsAnalyzer
from rldk.forensics.gradient_norms_metrics import GradientNormsMetrics
from rldk.forensics.kl_schedule_metrics import KLScheduleMetrics
from rldk.forensics.kl_schedule_tracker import KLScheduleTracker
from rldk.forensics.length_bias import LengthBiasTracker
from rldk.forensics.length_bias_metrics import LengthBiasMetrics
from rldk.forensics.rows import RESPONSES
from rldk.forensics.tracker import Tracker

__all__ = ["Trackers"]


class Trackers:
    """The four trackers; `None` for one that is switched off.

    A record is made when it is asked for, and kept until its tracker takes something new.
    """

    def __init__(
        self,
        kl: KLScheduleTracker | None,
        gradients: GradientNormsAnalyzer | None,
        advantages: AdvantageStatisticsTracker | None,
        length: LengthBiasTracker | None,
    ) -> None:
        self.kl, self.gradients, self.advantages, self.length = kl, gradients, advantages, length
        self._forget()

    def _forget(self) -> None:
        self._kl: KLScheduleMetrics | None = None
        self._gradients: GradientNormsMetrics | None = None
        self._advantages: AdvantageStatisticsMetrics | None = None
        self._length: LengthBiasMetrics | None = None

    def by_name(self) -> dict[str, Tracker | None]:
        """The trackers by the names that analysis, anomalies and switches have for them."""
        return {
            "kl_schedule": self.kl,
            "gradient_norms": self.gradients,
            "advantage_statistics": self.advantages,
            "length_bias": self.length,
        }

    def take(self, event: Event) -> float:
        """Take an event; the correlation of length and reward if its responses give one, else NaN."""
        metrics, step = event.metrics, event.step
        get = metrics.get
        if self.kl is not None and ("kl_mean" in metrics or "kl_coef" in metrics):
            self.kl.observe(step, get("kl_mean", nan), get("kl_coef", nan))
            self._kl = None
        if self.gradients is not None and (
            "policy_grad_norm" in metrics or "grad_norm" in metrics or "value_grad_norm" in metrics
        ):
            self.gradients.observe(step, get("policy_grad_norm", nan), get("value_grad_norm", nan), get("grad_norm", nan))
            self._gradients = None
        if self.advantages is not None and (
            "advantage_mean" in metrics or "advantage_std" in metrics or "advantage_max" in metrics
        ):
            self.advantages.observe(step, metrics)
            self._advantages = None
        responses = event.extra.get(RESPONSES) if event.extra else None
        if self.length is None or (responses is None and "length_reward_corr" not in metrics):
            return nan
        self._length = None
        return self.length.observe(step, responses, get("length_reward_corr", nan))

    def records(
        self,
    ) -> tuple[
        KLScheduleMetrics | None, GradientNormsMetrics | None, AdvantageStatisticsMetrics | None, LengthBiasMetrics | None
    ]:
        """What each of them knows now."""
        if self._kl is None and self.kl is not None:
            self._kl = self.kl.metrics()
        if self._gradients is None and self.gradients is not None:
            self._gradients = self.gradients.metrics()
        if self._advantages is None and self.advantages is not None:
            self._advantages = self.advantages.metrics()
        if self._length is None and self.length is not None:
            self._length = self.length.metrics()
        return self._kl, self._gradients, self._advantages, self._length

    def reset(self) -> None:
        """Forget the run."""
        for tracker in self.by_name().values():
            if tracker is not None:
                tracker.reset()
        self._forget()

    def state_dict(self) -> dict[str, Any]:
        """All that they know, as JSON can hold it."""
        return {name: None if tracker is None else tracker.state_dict() for name, tracker in self.by_name().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the trackers that gave `state` were."""
        for name, tracker in self.by_name().items():
            if tracker is not None and state[name] is not None:
                tracker.load_state_dict(state[name])
        self._forget()
