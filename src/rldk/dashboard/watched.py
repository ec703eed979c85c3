"""One run as the page sees it: its points, its judgement so far, its samples and notes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rldk.core.event import Event
from rldk.core.text import clean
from rldk.dashboard.quick import Cells, cells_of
from rldk.dashboard.samples import Samples
from rldk.forensics import ComprehensivePPOForensics
from rldk.present.plots.downsample import pick_extremes
from rldk.present.plots.growing import GrowingRun
from rldk.present.plots.panel import FloatArray
from rldk.present.plots.source import DERIVED

__all__ = ["Watched"]

_MOST_NOTES = 200
_MOST_ANOMALIES = 500
_MOST_VALUES = 60_000_000  # a million events of some 50 columns, 4 bytes each
_BUCKET = 256


class Watched:
    """A run that is open on some page. `take` shows events, `judge` judges them; the second may lag behind the first."""

    def __init__(self, run_id: str, dtype: npt.DTypeLike = np.float64) -> None:
        self.run_id = run_id
        self.growing = GrowingRun(run_id, dtype)
        self.sketch: GrowingRun | None = None
        self.forensics = ComprehensivePPOForensics()
        self.samples = Samples()
        self.notes: deque[tuple[int, str]] = deque(maxlen=_MOST_NOTES)
        self.last_step: int | None = None
        self.sketched = 0
        self.total = 0
        self._dtype = dtype

    def draft(self, events: Sequence[Event]) -> None:
        """Show these events until the run is read."""
        self.sketch = GrowingRun(self.run_id)
        self.sketch.take(events)
        self.sketched = len(events)
        self.last_step = events[-1].step

    def take(self, events: list[Event]) -> None:
        """Show more events."""
        times = [np.nan if event.wall_time is None else event.wall_time for event in events]
        self.growing.extend([event.step for event in events], cells_of(events), times)
        self.total += len(events)
        if len(self.growing) * len(self.growing.names()) > _MOST_VALUES:
            self._thin()
        if self.sketch is None:
            self.last_step = events[-1].step

    def _thin(self) -> None:
        """Let go of rows, so that the memory stays bounded: those in which nothing is an extreme of its stretch of rows."""
        old = self.growing
        columns = {name: column for name, column in old._columns.items() if name not in DERIVED}
        kept = np.zeros(len(old), dtype=bool)
        for name in old.names():
            kept[pick_extremes(old.column(name), _BUCKET)] = True
        place = np.cumsum(kept) - 1
        cells: Cells = {}
        for name, column in columns.items():
            rows = column.rows(np.arange(len(column.pyramid)))
            there = kept[rows]
            cells[name] = (place[rows[there]], column.pyramid.values[there].astype(np.float64))
        self.growing = GrowingRun(self.run_id, self._dtype)
        self.growing.extend(old.steps[kept], cells, old.times[kept])

    def read_through(self) -> None:
        """All of the run has been taken: the sketch has done its duty."""
        if self.sketch is not None:
            self.sketch = None
            self.last_step = int(self.growing.steps[-1]) if len(self.growing) else None

    def judge(self, event: Event) -> None:
        """Judge the next event, whose metrics have canonical names."""
        self.forensics.take(event)
        self.samples.take(event)
        self.notes.extend((event.step, clean(note, 2000)) for note in event.notes[:20])

    @property
    def source(self) -> GrowingRun:
        """Where panels get their points from."""
        return self.sketch or self.growing

    def state(self) -> dict[str, Any]:
        """All that the page shows beside curves, and that changes as the run goes on."""
        engine = self.forensics.engine
        result = self.forensics.result()
        steps = self.growing.steps
        return {
            "run_id": clean(self.run_id, 300),
            "rows": self.total,
            "kept": len(self.growing),
            "first_step": int(steps[0]) if len(steps) else None,
            "last_step": self.last_step,
            "judged": engine.events,
            "sketched": self.sketched if self.sketch is not None else 0,
            "verdict": result.verdict,
            "state": result.state,
            "reason": result.reason,
            "scores": result.scores,
            "worst_scores": result.worst_scores,
            "coverage": result.coverage.sentence,
            "coverage_level": result.coverage.level,
            "anomalies": [anomaly.to_dict() for anomaly in result.anomalies[-_MOST_ANOMALIES:]],
            "machine": [anomaly.to_dict() for anomaly in result.machine[-_MOST_ANOMALIES:]],
            "standing": [anomaly.type for anomaly in result.standing],
            "incidents": [incident.to_dict() for incident in result.incidents],
            "worth_knowing": result.notes,
            "names": [name for name in self.source.names() if name not in DERIVED],
            "drawn": list(self.source.names()),
            "samples": self.samples.total,
            "notes": list(self.notes),
            "pace": self._pace(),
            "timed": self.source.is_timed,
        }

    def _pace(self) -> float | None:
        """Seconds between two events of late, by their own clock."""
        times = self.growing.times[-20:]
        gaps = np.diff(times[np.isfinite(times)])
        return float(np.median(gaps)) if len(gaps) else None

    def analysis(self) -> dict[str, Any]:
        """What trackers and detectors know, with what each detector lacks."""
        found = self.forensics.get_comprehensive_analysis()
        kl = self.forensics.trackers.kl
        if kl is not None and not kl.target_chosen:  # measured against a target that nobody chose
            told = found["trackers"].get("kl_schedule") or {}
            found["trackers"]["kl_schedule"] = {
                name: value for name, value in told.items() if "target" not in name and "violation" not in name
            }
        return found

    def rows(self, span: tuple[float, float] | None, most: int, axis: str = "step") -> dict[str, Any]:
        """The rows as columns, for export: as they are, or if there are too many the first of them."""
        steps = self.growing.steps
        along = self.growing.along(axis)
        places = np.flatnonzero(np.ones(len(steps), dtype=bool) if span is None else (along >= span[0]) & (along <= span[1]))
        kept = places[:most]
        columns: dict[str, FloatArray] = {
            "step": steps[kept].astype(np.float64),
            "wall_time": self.growing.times[kept],
        }
        for name in self.growing.names():
            if name not in DERIVED:
                columns[name] = self.growing.column(name)[kept]
        return {"columns": columns, "rows": len(kept), "of": len(places)}
