"""The judge of a live run, from what the user has set: it survives errors of its own, and judges once what a loop logs of a step
in several calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.detectors.base import Detector
from rldk.forensics.comprehensive_ppo_forensics import ComprehensivePPOForensics
from rldk.judge.config import ScanConfig, bounds_of
from rldk.judge.judge import Judge
from rldk.judge.record import ComprehensivePPOMetrics
from rldk.judge.whole_steps import WholeSteps
from rldk.monitor.guard import Guard
from rldk.runs.canonical import RESPONSES

__all__ = ["LiveJudge", "build_forensics", "settings_for_log", "without_responses"]


def build_forensics(
    config: ScanConfig | Mapping[str, Any] | None, options: Mapping[str, Any] | None, limits: Mapping[str, Any] | None
) -> ComprehensivePPOForensics:
    """A judge with the settings of a scan, the options and switches of `ComprehensivePPOForensics`, and hard limits."""
    given = config if isinstance(config, ScanConfig) else ScanConfig.from_dict(config or {})
    return given.build_judge(ComprehensivePPOForensics, options, limits)


def settings_for_log(
    config: ScanConfig | Mapping[str, Any] | None, options: Mapping[str, Any] | None, limits: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The same settings in the form of the log (`RunConfig.rldk`), so that a scan judges as the live run does."""
    given = config if isinstance(config, ScanConfig) else ScanConfig.from_dict(config or {})
    others = dict(options or {})
    found = {
        "limits": {**given.limits, **bounds_of(limits or {})},
        "detectors": given.detectors,
        "kl_target": others.pop("kl_target", given.kl_target),
        "kl_target_tolerance": others.pop("kl_target_tolerance", given.kl_target_tolerance),
        "sensitivity": given.sensitivity,
        "options": others,
    }
    return {name: value for name, value in found.items() if value not in (None, {})}


class LiveJudge:
    """Passes events to a judge. What fails there is reported by the guard, and a detector that keeps failing is dropped.

    Args:
        judge: with the settings of the run.
        guard: reports errors.

    Attributes:
        steps: which rows belong to one step, and what of it waits for the next step.
    """

    def __init__(self, judge: Judge, guard: Guard) -> None:
        self.judge, self._guard = judge, guard
        self.steps = WholeSteps()
        self._record: ComprehensivePPOMetrics | None = None

    def take(self, event: Event) -> tuple[Event, list[Anomaly]]:
        """Judge a step: the event as logs and outputs take it, with what was found in it, and the anomalies that it raises."""
        seen = self._guard.attempt("trackers", self.judge.measured, event) or event
        if RESPONSES in event.extra:
            event = replace(without_responses(event), metrics=seen.metrics)
        notes = self.judge.engine.notes
        noted = len(notes)
        self._record = None
        raised = self._guard.attempt("detectors", self.judge.take_measured, seen, self._report) or []
        if raised or len(notes) > noted:
            said = [*(one.message for one in raised), *(note.message for note in notes[noted:])]
            event = replace(event, notes=[*event.notes, *said])
        return event, raised

    def take_again(self, events: Iterable[Event]) -> None:
        """Judge what a log holds already, unless a saved state was loaded."""
        if self.judge.engine.events:
            return
        for event in events:
            for whole in self.steps.complete(event):
                self.take(whole)
        if (held := self.steps.release()) is not None:
            self.take(held)

    def _report(self, detector: Detector, error: BaseException) -> None:
        self._guard.report(f"detector {detector.key}", error)

    def forget_record(self) -> None:
        """Something else than an event has changed what is known."""
        self._record = None

    def record(self) -> ComprehensivePPOMetrics:
        """What trackers and scores say after the last event; made once, however many outputs and callbacks ask."""
        if self._record is None:
            self._record = self.judge.current()
        return self._record

    def state_dict(self) -> dict[str, Any]:
        """What is known of the run and its rows, as JSON can hold it."""
        return {"forensics": self.judge.state_dict(), "steps": self.steps.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where the judge that gave `state` was."""
        self.judge.load_state_dict(state["forensics"])
        if "steps" in state:
            self.steps.load_state_dict(state["steps"])


def without_responses(event: Event) -> Event:
    """The event as it is written: responses are measured, and not kept."""
    if RESPONSES not in event.extra:
        return event
    return replace(event, extra={name: value for name, value in event.extra.items() if name != RESPONSES})
