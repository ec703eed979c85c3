"""A tracker by itself: it measures, and the detectors of its family judge what it is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.core.files import strict
from rldk.detectors.table import DETECTORS
from rldk.judge.engine import Engine
from rldk.judge.trackers.tracker import Tracker

__all__ = ["StandaloneTracker"]


class StandaloneTracker(Tracker):
    """Adds to a tracker the detectors of its `family`, so that it reports anomalies without the other trackers."""

    family: ClassVar[str]
    engine: Engine

    def _context(self) -> dict[str, Any]:
        """What the detectors know beside the metrics."""
        return {}

    def reset(self) -> None:
        super().reset()
        self.engine = Engine([kind() for kind in DETECTORS if kind.family == self.family], context=self._context())

    def _judge(self, step: int, given: Mapping[str, float]) -> None:
        """Show the detectors what was logged at a step; NaN was not."""
        self.engine.observe(Event(step, {name: value for name, value in given.items() if value == value}))

    @property
    def anomalies(self) -> list[Anomaly]:
        """The anomalies of this family so far."""
        return self.engine.anomalies

    def get_anomalies(self) -> list[dict[str, Any]]:
        """The anomalies of this family so far, in the order in which they were raised."""
        return [strict(anomaly.to_dict()) for anomaly in self.anomalies]

    def get_summary(self) -> dict[str, Any]:
        """The latest record as strict JSON, with the parts of its scores and the anomalies."""
        return {**super().get_summary(), "anomalies": self.get_anomalies()}

    def state_dict(self) -> dict[str, Any]:
        """All that is known, as JSON can hold it."""
        return {**super().state_dict(), "engine": self.engine.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where the tracker that gave `state` was."""
        super().load_state_dict({name: value for name, value in state.items() if name != "engine"})
        self.engine.load_state_dict(state["engine"])
