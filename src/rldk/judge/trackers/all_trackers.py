"""The trackers of a run together: those that are switched on take each event, and give their records."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import Any

from rldk.core.event import Event
from rldk.judge.trackers.advantage_statistics import AdvantageStatisticsMetrics, AdvantageStatisticsTracker
from rldk.judge.trackers.gradient_norms import GradientNormsAnalyzer, GradientNormsMetrics
from rldk.judge.trackers.kl_schedule import KLScheduleMetrics, KLScheduleTracker
from rldk.judge.trackers.length_bias import LengthBiasMetrics, LengthBiasTracker
from rldk.judge.trackers.tracker import Tracker
from rldk.runs.canonical import RESPONSES

__all__ = ["Trackers"]


class Trackers:
    """The four trackers; `None` for one that is switched off.

    A record is made when it is asked for, and kept until its tracker takes something new: rows that log few metrics need not
    pay for the others.
    """

    def __init__(
        self,
        kl: KLScheduleTracker | None,
        gradients: GradientNormsAnalyzer | None,
        advantages: AdvantageStatisticsTracker | None,
        length: LengthBiasTracker | None,
    ) -> None:
        self.kl, self.gradients, self.advantages, self.length = kl, gradients, advantages, length
        self._forget_records()

    def _forget_records(self) -> None:
        self._kl: KLScheduleMetrics | None = None
        self._gradients: GradientNormsMetrics | None = None
        self._advantages: AdvantageStatisticsMetrics | None = None
        self._length: LengthBiasMetrics | None = None

    def by_name(self) -> dict[str, Tracker | None]:
        """The trackers by the names that analysis, anomalies and switches use."""
        return {
            "kl_schedule": self.kl,
            "gradient_norms": self.gradients,
            "advantage_statistics": self.advantages,
            "length_bias": self.length,
        }

    def take(self, event: Event) -> float:
        """Take an event. Returns the correlation of length and reward if its responses give one, else NaN."""
        step, metrics = event.step, event.metrics
        if self.kl is not None and self.kl.observe(step, metrics):
            self._kl = None
        if self.gradients is not None and self.gradients.observe(step, metrics):
            self._gradients = None
        if self.advantages is not None and self.advantages.observe(step, metrics):
            self._advantages = None
        responses = event.extra.get(RESPONSES) if event.extra else None
        if self.length is None or (responses is None and "length_reward_corr" not in metrics):
            return nan
        self._length = None
        return self.length.take_responses(step, responses, metrics.get("length_reward_corr", nan))

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
        self._forget_records()

    def state_dict(self) -> dict[str, Any]:
        """All that they know, as JSON can hold it."""
        return {name: None if tracker is None else tracker.state_dict() for name, tracker in self.by_name().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where the trackers that gave `state` were."""
        for name, tracker in self.by_name().items():
            if tracker is not None and state[name] is not None:
                tracker.load_state_dict(state[name])
        self._forget_records()
