"""The trackers of a run together: those that are switched on take each event, and give their records."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import Any

from rldk.core.event import Event
from rldk.judge.trackers.advantage_statistics import AdvantageStatisticsTracker
from rldk.judge.trackers.advantage_statistics_metrics import AdvantageStatisticsMetrics
from rldk.judge.trackers.gradient_norms import GradientNormsAnalyzer
from rldk.judge.trackers.gradient_norms_metrics import GradientNormsMetrics
from rldk.judge.trackers.kl_schedule import KLScheduleTracker
from rldk.judge.trackers.kl_schedule_metrics import KLScheduleMetrics
from rldk.judge.trackers.length_bias import LengthBiasTracker
from rldk.judge.trackers.length_bias_metrics import LengthBiasMetrics
from rldk.judge.trackers.tracker import Tracker
from rldk.runs.rows import RESPONSES

__all__ = ["Trackers"]


BATCH = 32


class Trackers:
    """The four trackers; `None` for one that is switched off.

    A record is made when it is asked for, and kept until its tracker takes something new. Events wait until then, or until
    there are 32: one tracker after the other over a few events costs half of each event through all of them.
    """

    def __init__(
        self,
        kl: KLScheduleTracker | None,
        gradients: GradientNormsAnalyzer | None,
        advantages: AdvantageStatisticsTracker | None,
        length: LengthBiasTracker | None,
    ) -> None:
        self._trackers = kl, gradients, advantages, length
        self._waiting: list[tuple[int, Mapping[str, float]]] = []
        self._forget()

    def _forget(self) -> None:
        self._kl: KLScheduleMetrics | None = None
        self._gradients: GradientNormsMetrics | None = None
        self._advantages: AdvantageStatisticsMetrics | None = None
        self._length: LengthBiasMetrics | None = None

    @property
    def kl(self) -> KLScheduleTracker | None:
        """That of the KL and its coefficient."""
        self._settle()
        return self._trackers[0]

    @property
    def gradients(self) -> GradientNormsAnalyzer | None:
        """That of the gradient norms."""
        self._settle()
        return self._trackers[1]

    @property
    def advantages(self) -> AdvantageStatisticsTracker | None:
        """That of the advantages."""
        self._settle()
        return self._trackers[2]

    @property
    def length(self) -> LengthBiasTracker | None:
        """That of length bias, which waits for nothing: the engine judges what it finds."""
        return self._trackers[3]

    def by_name(self) -> dict[str, Tracker | None]:
        """The trackers by the names that analysis, anomalies and switches have for them."""
        self._settle()
        return dict(zip(("kl_schedule", "gradient_norms", "advantage_statistics", "length_bias"), self._trackers, strict=True))

    def take(self, event: Event) -> float:
        """Take an event; the correlation of length and reward if its responses give one, else NaN."""
        metrics, step, waiting = event.metrics, event.step, self._waiting
        waiting.append((step, metrics))
        if len(waiting) >= BATCH:
            self._settle()
        responses = event.extra.get(RESPONSES) if event.extra else None
        length = self._trackers[3]
        if length is None or (responses is None and "length_reward_corr" not in metrics):
            return nan
        self._length = None
        return length.observe(step, responses, metrics.get("length_reward_corr", nan))

    def _settle(self) -> None:
        """Give the trackers the events that wait."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        kl, gradients, advantages, _ = self._trackers
        if kl is not None and kl.take_rows(waiting):
            self._kl = None
        if gradients is not None and gradients.take_rows(waiting):
            self._gradients = None
        if advantages is not None and advantages.take_rows(waiting):
            self._advantages = None

    def records(
        self,
    ) -> tuple[
        KLScheduleMetrics | None, GradientNormsMetrics | None, AdvantageStatisticsMetrics | None, LengthBiasMetrics | None
    ]:
        """What each of them knows now."""
        self._settle()
        kl, gradients, advantages, length = self._trackers
        if self._kl is None and kl is not None:
            self._kl = kl.metrics()
        if self._gradients is None and gradients is not None:
            self._gradients = gradients.metrics()
        if self._advantages is None and advantages is not None:
            self._advantages = advantages.metrics()
        if self._length is None and length is not None:
            self._length = length.metrics()
        return self._kl, self._gradients, self._advantages, self._length

    def reset(self) -> None:
        """Forget the run."""
        self._waiting.clear()
        for tracker in self.by_name().values():
            if tracker is not None:
                tracker.reset()
        self._forget()

    def state_dict(self) -> dict[str, Any]:
        """All that they know, as JSON can hold it."""
        return {name: None if tracker is None else tracker.state_dict() for name, tracker in self.by_name().items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the trackers that gave `state` were."""
        self._waiting.clear()
        for name, tracker in self.by_name().items():
            if tracker is not None and state[name] is not None:
                tracker.load_state_dict(state[name])
        self._forget()
