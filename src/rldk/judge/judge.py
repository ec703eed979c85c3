"""The judge of one run: what its events measure, what the detectors raise, and the scores, live or from a log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import nan
from typing import Any

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.core.files import strict
from rldk.detectors.base import Detector
from rldk.detectors.table import DETECTORS, is_machine
from rldk.judge.engine import Engine, OnError
from rldk.judge.record import ComprehensivePPOMetrics
from rldk.judge.result import Result, result_of
from rldk.judge.scores.alarms import alarm
from rldk.judge.scores.formulas import MAIN_SCORES
from rldk.judge.scores.overall import FOLLOWED, convergence, health, stability
from rldk.judge.trackers.advantage_statistics import AdvantageStatisticsTracker
from rldk.judge.trackers.all_trackers import Trackers
from rldk.judge.trackers.gradient_norms import GradientNormsAnalyzer
from rldk.judge.trackers.kl_schedule import KLScheduleTracker
from rldk.judge.trackers.length_bias import LengthBiasTracker
from rldk.runs.canonical import prefix_held_out

__all__ = ["Judge"]


class Judge:
    """Watches a run: trackers that measure, detectors that judge, and scores; constant time per step, bounded memory.

    Args:
        kl_target: the target of the KL. Without it 0.1 is shown and measured against, but no anomaly and no score uses
            a target that nobody chose.
        kl_target_tolerance: how far from the target is still inside the range.
        window_size: number of values in the trackers' rolling statistics.
        enable_kl_schedule_tracking: the KL tracker and the detectors of its family; the other switches likewise.
        length_bias_threshold: rank correlation of length and reward from which it is reported.
        detectors: those to run, instead of all those of the families that are switched on.
    """

    def __init__(
        self,
        kl_target: float | None = None,
        kl_target_tolerance: float = 0.05,
        window_size: int = 100,
        enable_kl_schedule_tracking: bool = True,
        enable_gradient_norms_analysis: bool = True,
        enable_advantage_statistics: bool = True,
        enable_length_bias_detection: bool = True,
        length_bias_threshold: float = 0.35,
        *,
        detectors: Iterable[Detector] | None = None,
    ) -> None:
        kl = KLScheduleTracker(kl_target, kl_target_tolerance, window_size)
        length = LengthBiasTracker(length_bias_threshold, window_size=window_size)
        self.trackers = Trackers(
            kl if enable_kl_schedule_tracking else None,
            GradientNormsAnalyzer(window_size) if enable_gradient_norms_analysis else None,
            AdvantageStatisticsTracker(window_size) if enable_advantage_statistics else None,
            length if enable_length_bias_detection else None,
        )
        self.kl_target, self.kl_target_tolerance, self.window_size = kl.kl_target, kl.kl_target_tolerance, window_size
        self.length_bias_threshold = length.length_bias_threshold
        self._context = {"kl_target": kl.kl_target, "kl_target_tolerance": kl.kl_target_tolerance} if kl.target_chosen else {}
        self._detectors = self._from_table() if detectors is None else list(detectors)
        self.reset()

    @property
    def switched_off(self) -> set[str]:
        """The families whose tracker is switched off, and their detectors with it."""
        return {name for name, tracker in self.trackers.by_name().items() if tracker is None}

    def _from_table(self) -> list[Detector]:
        off = self.switched_off
        given = {"length_bias": {"threshold": self.length_bias_threshold}}
        return [kind(**given.get(kind.type, {})) for kind in DETECTORS if not off & {kind.family, kind.type}]

    def reset(self) -> None:
        """Forget the run; the settings stay."""
        self.trackers.reset()
        for detector in self._detectors:
            detector.reset()
        self.engine = Engine(self._detectors, context=self._context, follow=FOLLOWED)

    def observe(self, event: Event) -> ComprehensivePPOMetrics:
        """Take an event whose metrics have canonical names, as `update` takes metrics."""
        raised = self.take(event)
        return self._record(event, tuple(strict(anomaly.to_dict()) for anomaly in raised) if raised else ())

    def take(self, event: Event) -> list[Anomaly]:
        """Pass an event through trackers and engine, without a record. The event itself is not changed."""
        return self.engine.observe(self.measured(event))

    def take_measured(self, event: Event, on_error: OnError | None = None) -> list[Anomaly]:
        """Pass an event that `measured` gave through the engine; one of the last event's step is more of that event."""
        return self.engine.supplement(event, on_error)

    def measured(self, event: Event) -> Event:
        """Pass an event through the trackers alone. Returns it as the engine takes it, with what they found in its responses."""
        if event.model_info.get("phase", "train") != "train":
            event = prefix_held_out(event)
        correlation = self.trackers.take(event)
        if correlation == correlation and "length_reward_corr" not in event.metrics:
            metrics = {**event.metrics, "length_reward_corr": correlation}
            event = Event(event.step, metrics, event.wall_time, model_info=event.model_info, nulls=event.nulls)
        return event

    def _record(self, event: Event, raised: tuple[dict[str, Any], ...] = ()) -> ComprehensivePPOMetrics:
        kl, gradients, advantages, length = self.trackers.records()
        engine, standing = self.engine, self.standing
        alarms = (1.0, 1.0, 1.0) if not standing else tuple(alarm(standing, name) for name in MAIN_SCORES)
        healthy, health_parts = health(kl, gradients, advantages, length, engine, alarms[0])
        stable, stability_parts = stability(kl, gradients, advantages, engine, alarms[1])
        converging, convergence_parts = convergence(advantages, engine, alarms[2])
        get = event.metrics.get
        return ComprehensivePPOMetrics(
            event.step, get("kl_mean", nan), get("kl_coef", nan), get("entropy_mean", nan),
            get("reward_mean", nan), get("reward_std", nan), kl, gradients, advantages, length,
            healthy, stable, converging, raised, tuple(event.metrics.items()),
            health_parts, stability_parts, convergence_parts,
        )  # fmt: skip

    @property
    def anomalies(self) -> list[Anomaly]:
        """All anomalies of the training so far, in the order in which they were raised."""
        return [anomaly for anomaly in self.engine.anomalies if not is_machine(anomaly)]

    @property
    def machine(self) -> list[Anomaly]:
        """What was found of the machine so far."""
        return [anomaly for anomaly in self.engine.anomalies if is_machine(anomaly)]

    @property
    def standing(self) -> list[Anomaly]:
        """The anomalies of the training that stand now."""
        return [anomaly for anomaly in self.engine.standing if not is_machine(anomaly)]

    def result(self) -> Result:
        """The verdict, the scores and all that is known now."""
        return result_of(self)

    def current(self) -> ComprehensivePPOMetrics:
        """What is known now: the record of the last update, without that step's own metrics."""
        return self._record(Event(self.engine.last_step or 0))

    def state_dict(self) -> dict[str, Any]:
        """All that is known of the run, as JSON can hold it."""
        return {"trackers": self.trackers.state_dict(), "engine": self.engine.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the judge that gave `state` was; the results are the same as without the break."""
        self.trackers.load_state_dict(state["trackers"])
        self.engine.load_state_dict(state["engine"])
