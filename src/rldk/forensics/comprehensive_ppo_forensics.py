"""All trackers and all detectors over one run, live or from a log."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from math import nan
from pathlib import Path
from typing import Any

from rldk.core.anomaly import Anomaly
from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.core.jsonio import to_step
from rldk.detectors.base import Detector
from rldk.detectors.table import DETECTORS
from rldk.forensics.advantage_statistics_tracker import AdvantageStatisticsTracker
from rldk.forensics.analysis import analysis, health_summary, length_bias_analysis
from rldk.forensics.comprehensive_ppo_metrics import ComprehensivePPOMetrics, make_metrics
from rldk.forensics.engine import Engine, told_apart
from rldk.forensics.gradient_norms_analyzer import GradientNormsAnalyzer
from rldk.forensics.kl_schedule_tracker import DEFAULT_KL_TARGET, KLScheduleTracker
from rldk.forensics.length_bias import LengthBiasTracker
from rldk.forensics.overall import FOLLOWED, convergence, health, stability
from rldk.forensics.plain import strict, write_json
from rldk.forensics.ppo_scan import scan
from rldk.forensics.rows import RESPONSES, Reader
from rldk.forensics.sample import describe
from rldk.forensics.trackers import Trackers

__all__ = ["ComprehensivePPOForensics", "ComprehensivePPOMetrics"]

ENHANCED_VERSION = "2.0"


class ComprehensivePPOForensics:
    """Watches a run: trackers that measure, detectors that judge, and scores; constant time a step, bounded memory.

    Args:
        kl_target: the KL that is aimed at. Without it 0.1 is shown and measured against, but no anomaly and no score rests
            on a target that nobody chose.
        kl_target_tolerance: how far from the target is still inside the range.
        window_size: how many values the trackers' rolling statistics reach back.
        enable_kl_schedule_tracking: the KL tracker and the detectors of its family; the other switches likewise.
        length_bias_threshold: rank correlation of length and reward from which on it is reported.
        detectors: those to run, instead of all those of the families that are switched on.
    """

    def __init__(
        self,
        kl_target: float = DEFAULT_KL_TARGET,
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
        self._reader = Reader()
        self.reset()

    def _from_table(self) -> list[Detector]:
        off = {name for name, tracker in self.trackers.by_name().items() if tracker is None}
        given = {"length_bias": {"threshold": self.length_bias_threshold}}
        return [kind(**given.get(kind.type, {})) for kind in DETECTORS if not off & {kind.tracker, kind.type}]

    def reset(self) -> None:
        """Forget the run; the settings stay."""
        self.trackers.reset()
        for detector in self._detectors:
            detector.reset()
        self.engine = Engine(self._detectors, context=self._context, follow=FOLLOWED)

    def update(
        self,
        step: int,
        *,
        advantages: Any = None,
        advantage_samples: Any = None,
        response_data: Any = None,
        wall_time: float | None = None,
        **metrics: Any,
    ) -> ComprehensivePPOMetrics:
        """Take what was logged at a step.

        Args:
            step: the step.
            advantages: a sample of raw advantages, of any shape; its statistics come before those that were logged.
            advantage_samples: the same by its older name.
            response_data: records of response text or length with its reward, for length bias.
            wall_time: the time in seconds.
            metrics: any of the catalogue by name or alias; `None` was not logged. Others are kept if they are numbers.
        """
        number = to_step(step)
        if number is None:
            raise UsageError(f"Expected `step` to be a whole number, got {step!r:.80}.")
        sample = advantage_samples if advantages is None else advantages
        if sample is not None and not getattr(sample, "shape", True):
            sample = float(sample)  # an array or tensor of no dimension
        if isinstance(sample, (int, float)):
            metrics["advantage_mean"], sample = sample, None
        found = self._reader.given(metrics)
        if sample is not None:
            found.update(describe(sample))
        event = Event(number, found, wall_time)
        if response_data is not None:
            event.extra[RESPONSES] = response_data
        return self.observe(event)

    def observe(self, event: Event) -> ComprehensivePPOMetrics:
        """Take an event whose metrics have canonical names; the same as `update` with the same metrics."""
        raised = self.take(event)
        return self._record(event, tuple(strict(anomaly.to_dict()) for anomaly in raised) if raised else ())

    def take(self, event: Event) -> list[Anomaly]:
        """Pass an event through trackers and engine, without a record. The event itself is not changed."""
        return self.engine.observe(self.measured(event))

    def measured(self, event: Event) -> Event:
        """Pass an event through the trackers alone; the event as the engine takes it, with what they found in its responses."""
        if event.model_info.get("phase", "train") != "train":
            event = told_apart(event)
        correlation = self.trackers.take(event)
        if correlation == correlation and "length_reward_corr" not in event.metrics:
            metrics = {**event.metrics, "length_reward_corr": correlation}
            event = Event(event.step, metrics, event.wall_time, model_info=event.model_info, nulls=event.nulls)
        return event

    def _record(self, event: Event, raised: tuple[dict[str, Any], ...] = ()) -> ComprehensivePPOMetrics:
        kl, gradients, advantages, length = self.trackers.records()
        healthy, health_parts = health(kl, gradients, advantages, length, self.engine)
        stable, stability_parts = stability(kl, gradients, advantages, self.engine)
        converging, convergence_parts = convergence(advantages, self.engine)
        get = event.metrics.get
        return make_metrics(
            event.step, get("kl_mean", nan), get("kl_coef", nan), get("entropy_mean", nan),
            get("reward_mean", nan), get("reward_std", nan), kl, gradients, advantages, length,
            healthy, stable, converging, raised, tuple(event.metrics.items()),
            health_parts, stability_parts, convergence_parts,
        )  # fmt: skip

    def current(self) -> ComprehensivePPOMetrics:
        """What is known now: the record of the last update, without that step's own metrics."""
        return self._record(Event(self.engine.last_step or 0))

    def get_anomalies(self) -> list[dict[str, Any]]:
        """All anomalies so far, in the order in which they were raised."""
        return [strict(anomaly.to_dict()) for anomaly in self.engine.anomalies]

    def get_comprehensive_analysis(self) -> dict[str, Any]:
        """Scores and their parts, anomalies, and the summary of each tracker."""
        return analysis(self.current(), self.trackers, self.engine)

    def get_health_summary(self) -> dict[str, Any]:
        """The run in a few numbers, with a status."""
        return health_summary(self.current(), self.engine)

    def get_length_bias_analysis(self) -> dict[str, Any]:
        """Length bias by itself."""
        return length_bias_analysis(self.trackers)

    def scan_ppo_events_comprehensive(self, events: Iterable[Event | Mapping[str, Any]]) -> dict[str, Any]:
        """Scan a finished run, from its beginning: what was seen before is forgotten.

        The result of `scan_ppo_events`, with `comprehensive_analysis` and `enhanced_version`.
        """
        self.reset()
        found = scan(events, self.engine, self.take)
        return {**found, "comprehensive_analysis": self.get_comprehensive_analysis(), "enhanced_version": ENHANCED_VERSION}

    def save_analysis(self, path: str | os.PathLike[str]) -> Path:
        """Write the comprehensive analysis to a file, which is whole or not there."""
        return write_json(path, self.get_comprehensive_analysis())

    def state_dict(self) -> dict[str, Any]:
        """All that is known of the run, as JSON can hold it."""
        return {"trackers": self.trackers.state_dict(), "engine": self.engine.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where the forensics that gave `state` was; the results are the same as without the break."""
        self.trackers.load_state_dict(state["trackers"])
        self.engine.load_state_dict(state["engine"])
