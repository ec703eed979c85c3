"""The judge: one event after another through all detectors, the same live and from a file."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from rldk.core.anomaly import Anomaly
from rldk.core.detector import Detector, View
from rldk.core.event import Event
from rldk.core.series import Series
from rldk.detectors.table import DETECTORS

__all__ = ["Engine"]

_FIRST_ROWS = 1024
_BACK = 4

KNOBS = ("lr", "policy_lr", "value_lr", "kl_coef", "kl_mean", "rollout_length_mean", "batch_size", "clip_range", "temperature")
"""What advice may name: the values it would have the user change, as they were when the defect was raised."""


class Engine:
    """Runs the detectors over a stream of events; constant time a step and bounded memory.

    Args:
        detectors: those to run; by default one of each in the table.
        context: what is known of the run beforehand, such as `{"kl_target": 6.0}`.
        reductions: by what the KL is reduced, where the log says it (`{"kl_mean": "sequence"}`).
        follow: metrics whose series are kept even if no detector looks at them.
    """

    def __init__(
        self,
        detectors: Iterable[Detector] | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        reductions: Mapping[str, str] | None = None,
        follow: Iterable[str] = (),
    ) -> None:
        self.detectors = [kind() for kind in DETECTORS] if detectors is None else list(detectors)
        self.series: dict[str, Series] = {}
        self.context = dict(context or {})
        self.reductions = dict(reductions or {})
        self.anomalies: list[Anomaly] = []
        self.events = 0
        self.first_step: int | None = None
        self.last_step: int | None = None
        self._steps: deque[int] = deque(maxlen=_BACK)
        self._open: dict[str, list[Anomaly]] = {}
        read = (name for detector in self.detectors for name in (*detector.metrics(), *detector.reads))
        self._watched = frozenset((*read, *KNOBS, *follow))
        self._plans: dict[tuple[str, ...], tuple[list[str], list[Detector]]] = {}

    def observe(self, event: Event) -> list[Anomaly]:
        """Take the next event; the anomalies that it raises."""
        index = self.events
        metrics = event.metrics
        names, detectors = self._plan(tuple(metrics))
        series = self.series
        for name in names:
            found = series.get(name)
            if found is None:
                found = series[name] = Series()
            found.update(metrics[name], index)
        if info := event.model_info.get("reductions"):
            self.reductions.update(info)
        steps = self._steps
        view = View(event, index, event.step, series, steps[0] if len(steps) == _BACK else None, self.reductions, self.context)
        raised: list[Anomaly] = []
        for detector in detectors:
            was = detector.raised
            anomaly = detector.update(view)
            if anomaly is not None:
                anomaly.knobs = {name: series[name].last for name in KNOBS if name in series and series[name].n}
                raised.append(anomaly)
                self._open.setdefault(detector.key, []).append(anomaly)
            elif was and not detector.raised:
                for open_anomaly in self._open.pop(detector.key, ()):
                    open_anomaly.cleared_index = index
        self.anomalies += raised
        self.events = index + 1
        if self.first_step is None:
            self.first_step = event.step
        self.last_step = event.step
        steps.append(event.step)
        return raised

    def _plan(self, names: tuple[str, ...]) -> tuple[list[str], list[Detector]]:
        """Which metrics of such an event are followed, and which detectors have something new to look at."""
        plan = self._plans.get(names)
        if plan is None:
            present = frozenset(names)
            active = [
                detector for detector in self.detectors if not detector.metrics() or present.intersection(detector.metrics())
            ]
            plan = ([name for name in names if name in self._watched], active)
            if len(self._plans) < _FIRST_ROWS:
                self._plans[names] = plan
        return plan

    @property
    def standing(self) -> list[Anomaly]:
        """The anomalies that have been raised and not cleared."""
        return [anomaly for found in self._open.values() for anomaly in found] if self._open else []

    def inactive(self) -> list[tuple[str, list[str]]]:
        """The detectors that could not judge this run, and for want of what."""
        found = []
        for detector in self.detectors:
            lacking = detector.lacks({name for name, series in self.series.items() if series.n or series.nonfinite})
            if lacking:
                found.append((detector.type, lacking))
        return found

    def state_dict(self) -> dict[str, Any]:
        """All that the engine knows, as JSON can hold it."""
        return {
            "events": self.events,
            "first_step": self.first_step,
            "last_step": self.last_step,
            "context": self.context,
            "reductions": self.reductions,
            "series": {name: series.state_dict() for name, series in self.series.items()},
            "detectors": {detector.key: detector.state_dict() for detector in self.detectors},
            "steps": list(self._steps),
            "open": {key: [self.anomalies.index(anomaly) for anomaly in found] for key, found in self._open.items()},
            "anomalies": [anomaly.to_dict() for anomaly in self.anomalies],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the engine that gave `state` was; the results are the same as without the break."""
        self.events, self.first_step, self.last_step = state["events"], state["first_step"], state["last_step"]
        self.context, self.reductions = dict(state["context"]), dict(state["reductions"])
        self.series = {}
        for name, saved in state["series"].items():
            self.series[name] = Series()
            self.series[name].load_state_dict(saved)
        for detector in self.detectors:
            if detector.key in state["detectors"]:
                detector.load_state_dict(state["detectors"][detector.key])
        self.anomalies = [Anomaly(**saved) for saved in state["anomalies"]]
        self._steps = deque(state["steps"], _BACK)
        self._open = {key: [self.anomalies[number] for number in found] for key, found in state["open"].items()}
