"""A run that a page shows: its curves, its judgement so far, its samples and notes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.core.text import clean
from rldk.dashboard.samples import Samples
from rldk.forensics.analysis import analysis
from rldk.judge.acknowledgements import Acknowledgement
from rldk.judge.follow import FollowedRun
from rldk.judge.outlook import outlook
from rldk.judge.result import Result
from rldk.present.incidents import story
from rldk.present.plots.growing import GrowingRun
from rldk.present.plots.panel import FloatArray
from rldk.present.plots.source import DERIVED
from rldk.runs.run import Coverage, Run
from rldk.runs.table import ABSENT, NUMBER, Column

__all__ = ["ShownRun"]

_MAX_NOTES = 200
_MAX_ANOMALIES = 500
_MAX_VALUES = 60_000_000  # a million events of some 50 metrics, 4 bytes each
_BUCKET = 256
_MAX_LATEST = 20_000  # steps back that the beginning of an anomaly is known for
_MAX_STORIES = 20
_MAX_COMPARED = 20_000
_OUTLOOK_SECONDS = 5.0


class ShownRun(FollowedRun):
    """A run that is open on some page: `draw` adds events to its curves, `take` judges them, which may lag behind."""

    def __init__(self, run_id: str, framework: str | None = None, dtype: npt.DTypeLike = np.float64) -> None:
        super().__init__(run_id, framework)
        self.curves = GrowingRun(run_id, dtype)
        self.sketch: GrowingRun | None = None
        self.samples = Samples()
        self.notes: deque[tuple[int, str]] = deque(maxlen=_MAX_NOTES)
        self.rows = 0
        self.acknowledged: tuple[Acknowledgement, ...] = ()
        self._dtype = dtype
        self._latest_steps: deque[int] = deque(maxlen=_MAX_LATEST)
        self._step_at: dict[int, int] = {}
        self._raised_at: dict[str, float] = {}
        self._outlook: list[str] = []
        self._next_outlook = 0.0

    def draw_sketch(self, events: list[Event]) -> None:
        """Show these events until the run is read."""
        self.sketch = GrowingRun(self.run_id)
        self.sketch.take(events)

    def draw(self, events: list[Event]) -> None:
        """Add events to the curves."""
        self.curves.take(events)
        self.rows += len(events)
        self._bound()

    def attach(self, run: Run) -> None:
        super().attach(run)
        self.curves, self.rows = GrowingRun.of(run, self._dtype), len(run)
        self._bound()

    def _bound(self) -> None:
        """Drop rows of a very long run, so that its memory is bounded: those that are extreme in nothing."""
        if self.curves.size > _MAX_VALUES:
            self.curves = self.curves.thinned(_BUCKET)

    def take(self, event: Event) -> list[Anomaly]:
        self.samples.take(event)
        self.notes.extend((event.step, clean(note, 2000)) for note in event.notes[:20])
        self._latest_steps.append(event.step)
        raised = super().take(event)
        for anomaly in raised:
            back = min(max(anomaly.index - anomaly.since, 0), len(self._latest_steps) - 1)
            self._step_at[anomaly.since] = self._latest_steps[-1 - back]
            if event.wall_time is not None:
                self._raised_at[str(anomaly.index)] = event.wall_time
        return raised

    @property
    def source(self) -> GrowingRun:
        """Where panels get their points from."""
        return self.sketch or self.curves

    def state(self) -> dict[str, Any]:
        """All that the page shows besides curves and that changes as the run continues."""
        result, shown = self.result, self.source
        result.acknowledged = self.acknowledged
        acks = result.acknowledgement_of
        return {
            "run_id": clean(self.run_id, 300),
            "rows": self.rows,
            "kept": len(self.curves),
            "first_step": int(shown.steps[0]) if len(shown) else None,
            "last_step": int(shown.steps[-1]) if len(shown) else None,
            "judged": self.events,
            "sketched": len(self.sketch) if self.sketch is not None else 0,
            "verdict": result.verdict,
            "state": result.state,
            "reason": result.reason,
            "scores": result.scores,
            "worst_scores": result.worst_scores,
            "coverage": result.coverage.sentence,
            "coverage_level": result.coverage.level,
            "anomalies": [anomaly.to_dict() for anomaly in result.anomalies[-_MAX_ANOMALIES:]],
            "machine": [anomaly.to_dict() for anomaly in result.machine[-_MAX_ANOMALIES:]],
            "standing": [anomaly.type for anomaly in result.standing],
            "incidents": [incident.to_dict() for incident in result.incidents],
            "stories": self._stories(result),
            "raised_at": self._raised_at,
            "acknowledged": [None if (ack := acks(incident)) is None else ack.to_dict() for incident in result.incidents],
            "worth_knowing": result.notes,
            "drawn": list(shown.names()),
            "samples": self.samples.total,
            "notes": list(self.notes),
            "timed": shown.is_timed,
        }

    def _stories(self, result: Result) -> list[list[dict[str, Any]]]:
        """What was seen in each of the last incidents, in the order in which it began."""
        first = self.judge.engine.first_step or 0
        found = []
        for incident in result.incidents[-_MAX_STORIES:]:
            moments = story(incident, result.anomalies, lambda index: self._step_at.get(index, first))
            found.append([{"anomaly": one.anomaly.to_dict(), "began": one.began, "first": one.first} for one in moments])
        return found

    @property
    def seconds_per_event(self) -> float:
        """Seconds between two recent events, by their own clock; 0 where they have none."""
        times = self.curves.times[-20:]
        gaps = np.diff(times[np.isfinite(times)])
        return float(np.median(gaps)) if len(gaps) else 0.0

    def analysis(self) -> dict[str, Any]:
        """What the trackers measured, and which detectors are inactive."""
        found = analysis(self.judge)
        kl = self.judge.trackers.kl
        if kl is not None and not kl.target_chosen:  # measured against a target that nobody chose
            measured = found["trackers"].get("kl_schedule") or {}
            found["trackers"]["kl_schedule"] = {
                name: value for name, value in measured.items() if "target" not in name and "violation" not in name
            }
        return found

    def levels(self, names: Sequence[str]) -> dict[str, list[float]]:
        """Of each metric that it has the last value, the median, and the 5th and the 95th percentile."""
        found = {}
        for name in names:
            if name in self.curves.names():
                values = self.curves.column(name)
                values = values[np.isfinite(values)]
                if len(values):
                    found[name] = [float(values[-1]), *map(float, np.quantile(values, (0.5, 0.05, 0.95)))]
        return found

    def outlook(self) -> list[str]:
        """What to expect of the run, computed again at most every few seconds."""
        now = time.monotonic()
        if now >= self._next_outlook and self.events:
            self._outlook = outlook(self.whole_result(self.run_id))
            self._next_outlook = time.monotonic() + max(_OUTLOOK_SECONDS, 20.0 * (time.monotonic() - now))
        return self._outlook

    def whole_result(self, name: str) -> Result:
        """The result with a run behind it: the one that was read, or else the curves, at most 20,000 rows of them."""
        if self._source is not None:
            return replace(self.result, source=replace(self._source, run_id=name))
        curves = self.curves
        rows = np.unique(np.linspace(0, max(0, len(curves) - 1), min(len(curves), _MAX_COMPARED)).astype(np.intp))
        columns = {}
        for metric in curves.names():
            if metric not in DERIVED:
                values = curves.column(metric)[rows]
                columns[metric] = Column(values, np.where(np.isnan(values), ABSENT, NUMBER).astype(np.uint8))
        steps, times = curves.steps[rows], curves.times[rows]
        run = Run(name, Path(name), "events", self._framework, steps, times, columns, Coverage(), config=self._run_config)
        return replace(self.result, source=run)

    def table(self, span: tuple[float, float] | None, max_rows: int, axis: str = "step") -> dict[str, Any]:
        """The rows of a range as columns, for export; the first of them if there are too many."""
        steps, along = self.curves.steps, self.curves.along(axis)
        there = np.ones(len(steps), dtype=bool) if span is None else (along >= span[0]) & (along <= span[1])
        kept = np.flatnonzero(there)[:max_rows]
        columns: dict[str, FloatArray] = {"step": steps[kept].astype(np.float64), "wall_time": self.curves.times[kept]}
        for name in self.curves.names():
            if name not in DERIVED:
                columns[name] = self.curves.column(name)[kept]
        return {"columns": columns, "rows": len(kept)}
