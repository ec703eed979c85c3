"""The judge with metrics by keyword, and its results as dictionaries of strict JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.core.files import strict, write_json
from rldk.core.jsonio import to_step
from rldk.detectors.base import Detector
from rldk.forensics.analysis import analysis, health_summary, length_bias_analysis
from rldk.forensics.ppo_scan import scan
from rldk.functional.advantages import describe
from rldk.judge.judge import Judge
from rldk.judge.record import ComprehensivePPOMetrics
from rldk.judge.trackers.kl_schedule import DEFAULT_KL_TARGET
from rldk.runs.canonical import RESPONSES, Canonicaliser

__all__ = ["ComprehensivePPOForensics", "ComprehensivePPOMetrics"]

ENHANCED_VERSION = "2.0"


class ComprehensivePPOForensics(Judge):
    """Watches a run: `Judge` with the contract's ways in and out.

    The settings are those of `Judge`, except that the KL has a target unless `kl_target` is `None`: 0.1, in the unit in which
    the KL is given.
    """

    def __init__(
        self,
        kl_target: float | None = DEFAULT_KL_TARGET,
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
        super().__init__(
            kl_target, kl_target_tolerance, window_size, enable_kl_schedule_tracking, enable_gradient_norms_analysis,
            enable_advantage_statistics, enable_length_bias_detection, length_bias_threshold, detectors=detectors,
        )  # fmt: skip

    def reset(self) -> None:
        """Forget the run; the settings stay."""
        self._canonicaliser = Canonicaliser()
        super().reset()

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "keys": self._canonicaliser.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._canonicaliser.load_state_dict(state.get("keys"))

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
            metrics: any of the catalogue by name or alias; `None` was not logged. Numbers of your own are kept; a name that is
                nearly one of the catalogue is an error, which says the right one.
        """
        number = to_step(step)
        if number is None:
            raise UsageError(f"Expected `step` to be a whole number, got {step!r:.80}.")
        sample = advantage_samples if advantages is None else advantages
        if sample is not None and not getattr(sample, "shape", True):
            sample = float(sample)  # an array or tensor of no dimension
        if isinstance(sample, (int, float)):
            metrics["advantage_mean"], sample = sample, None
        found = self._canonicaliser.keywords(metrics)
        if sample is not None:
            found.update(describe(sample))
        event = Event(number, found, wall_time)
        if response_data is not None:
            event.extra[RESPONSES] = response_data
        return self.observe(event)

    def get_anomalies(self) -> list[dict[str, Any]]:
        """All anomalies so far, in the order in which they were raised."""
        return [strict(anomaly.to_dict()) for anomaly in self.anomalies]

    def get_comprehensive_analysis(self) -> dict[str, Any]:
        """Scores and their parts, anomalies, and the summary of each tracker."""
        return analysis(self)

    def get_health_summary(self) -> dict[str, Any]:
        """The run in a few numbers, with a status."""
        return health_summary(self)

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
        """Write the comprehensive analysis to a file; a reader never sees half of it."""
        return write_json(path, self.get_comprehensive_analysis())
