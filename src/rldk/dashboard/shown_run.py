"""A run that a page shows: its curves, its judgement so far, its samples and notes."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.core.jsonio import to_number
from rldk.core.text import clean
from rldk.forensics.analysis import analysis
from rldk.judge.follow import FollowedRun
from rldk.present.plots.growing import GrowingRun
from rldk.present.plots.panel import FloatArray
from rldk.present.plots.source import DERIVED
from rldk.runs.run import Run
from rldk.runs.table import NUMBER

__all__ = ["Samples", "ShownRun"]

_MAX_NOTES = 200
_MAX_ANOMALIES = 500
_MAX_VALUES = 60_000_000  # a million events of some 50 metrics, 4 bytes each
_BUCKET = 256


class ShownRun(FollowedRun):
    """A run that is open on some page: `draw` adds events to its curves, `take` judges them, which may lag behind."""

    def __init__(self, run_id: str, framework: str | None = None, dtype: npt.DTypeLike = np.float64) -> None:
        super().__init__(run_id, framework)
        self.curves = GrowingRun(run_id, dtype)
        self.sketch: GrowingRun | None = None
        self.samples = Samples()
        self.notes: deque[tuple[int, str]] = deque(maxlen=_MAX_NOTES)
        self.rows = 0
        self._dtype = dtype

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
        self.curves, self.rows = GrowingRun(self.run_id, self._dtype), len(run)
        cells = {}
        for name, column in run.columns.items():
            rows = np.flatnonzero(column.state == NUMBER)
            cells[name] = (rows, column.values[rows])
        self.curves.extend(run.steps, cells, run.wall_time)
        self._bound()

    def _bound(self) -> None:
        """Drop rows of a very long run, so that its memory is bounded: those that are extreme in nothing."""
        if self.curves.size > _MAX_VALUES:
            self.curves = self.curves.thinned(_BUCKET)

    def take(self, event: Event) -> list[Anomaly]:
        self.samples.take(event)
        self.notes.extend((event.step, clean(note, 2000)) for note in event.notes[:20])
        return super().take(event)

    @property
    def source(self) -> GrowingRun:
        """Where panels get their points from."""
        return self.sketch or self.curves

    def state(self) -> dict[str, Any]:
        """All that the page shows besides curves and that changes as the run continues."""
        result, shown = self.result, self.source
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
            "worth_knowing": result.notes,
            "drawn": list(shown.names()),
            "samples": self.samples.total,
            "notes": list(self.notes),
            "timed": shown.is_timed,
        }

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

    def table(self, span: tuple[float, float] | None, max_rows: int, axis: str = "step") -> dict[str, Any]:
        """The rows of a range as columns, for export; the first of them if there are too many."""
        steps, along = self.curves.steps, self.curves.along(axis)
        places = np.flatnonzero(np.ones(len(steps), dtype=bool) if span is None else (along >= span[0]) & (along <= span[1]))
        kept = places[:max_rows]
        columns: dict[str, FloatArray] = {"step": steps[kept].astype(np.float64), "wall_time": self.curves.times[kept]}
        for name in self.curves.names():
            if name not in DERIVED:
                columns[name] = self.curves.column(name)[kept]
        return {"columns": columns, "rows": len(kept), "of": len(places)}


_SAMPLE_KEYS = ("samples", "response_data", "completions", "responses", "generations", "rollouts")
_PROMPT_KEYS = ("prompt", "query", "question", "input", "instruction")
_ANSWER_KEYS = ("completion", "response", "answer", "output", "text", "generation", "response_text")
_REWARD_KEYS = ("reward", "score", "reward_mean", "advantage")
_MAX_SAMPLES = 500
_MAX_PER_STEP = 32
_MAX_TEXT = 4000


class Samples:
    """Prompts and answers that a run recorded in its events: the last 500, each text cut at 4000 characters."""

    def __init__(self) -> None:
        self.kept: deque[dict[str, Any]] = deque(maxlen=_MAX_SAMPLES)
        self.total = 0

    def take(self, event: Event) -> None:
        """Keep the samples of an event."""
        for name in _SAMPLE_KEYS:
            given = event.extra.get(name)
            if isinstance(given, list):
                made = [sample for record in given[:_MAX_PER_STEP] if (sample := _sample(event.step, record)) is not None]
                self.kept.extend(made)
                self.total += len(made)

    def page(self, start: int, count: int, words: str = "") -> tuple[list[dict[str, Any]], int]:
        """Some of them, the latest first, and how many there are; with `words` only those that contain them."""
        found = list(reversed(self.kept))
        if words:
            wanted = words.lower()
            found = [sample for sample in found if wanted in sample["prompt"].lower() or wanted in sample["answer"].lower()]
        return found[start : start + count], len(found)


def _sample(step: int, record: Any) -> dict[str, Any] | None:
    """A record as prompt, answer and reward; `None` for one without any text (a length and a reward alone)."""
    if isinstance(record, str):
        record = {"text": record}
    if not isinstance(record, Mapping):
        return None
    prompt, answer = _text(record, _PROMPT_KEYS), _text(record, _ANSWER_KEYS)
    if not prompt and not answer:
        return None
    reward = next((number for name in _REWARD_KEYS if (number := to_number(record.get(name))) is not None), None)
    cut = len(prompt) > _MAX_TEXT or len(answer) > _MAX_TEXT
    return {"step": step, "prompt": prompt[:_MAX_TEXT], "answer": answer[:_MAX_TEXT], "reward": reward, "cut": cut}


def _text(record: Mapping[str, Any], names: tuple[str, ...]) -> str:
    found = next((record[name] for name in names if record.get(name) is not None), "")
    return found if isinstance(found, str) else str(found)[: 2 * _MAX_TEXT]
