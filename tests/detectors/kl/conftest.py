"""How tests of KL put a stream through a detector: the unit and the target belong to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import pytest

from rldk.core.event import Event
from rldk.detectors.base import Detector
from rldk.judge.engine import Engine

Columns = Mapping[str, Sequence[float]]


def to_events(columns: Columns) -> list[Event]:
    rows = max(map(len, columns.values()))
    return [
        Event(row, {name: float(values[row]) for name, values in columns.items() if row < len(values)}) for row in range(rows)
    ]


def engine_for(detector: Detector, unit: str, context: Mapping[str, float]) -> Engine:
    return Engine([detector], reductions={"kl_mean": unit}, context=context)


@pytest.fixture
def watch() -> Callable[..., Engine]:
    """Put columns through a detector; the engine after the last row."""

    def watched(detector: Detector, columns: Columns, unit: str = "token", **context: float) -> Engine:
        engine = engine_for(detector, unit, context)
        for event in to_events(columns):
            engine.observe(event)
        return engine

    return watched


@pytest.fixture
def fires(watch: Callable[..., Engine]) -> Callable[..., list[tuple[int, str]]]:
    """Put columns through a detector; the rows at which it raises, with the severities."""

    def fired(detector: Detector, columns: Columns, unit: str = "token", **context: float) -> list[tuple[int, str]]:
        return [(anomaly.index, anomaly.severity) for anomaly in watch(detector, columns, unit, **context).anomalies]

    return fired


@pytest.fixture
def told(watch: Callable[..., Engine]) -> Callable[..., list[tuple[int, str, str]]]:
    """Put columns through a detector; the rows at which it raises or notes, with the severities and the clauses."""

    def said(detector: Detector, columns: Columns, unit: str = "token", **context: float) -> list[tuple[int, str, str]]:
        engine = watch(detector, columns, unit, **context)
        raised = [(anomaly.index, anomaly.severity, anomaly.clause) for anomaly in engine.anomalies]
        return sorted(raised + [(note.index, "note", note.clause) for note in engine.notes])

    return said


@pytest.fixture
def resumed() -> Callable[..., Engine]:
    """Like `watch`, with the state written as JSON and read into a new engine at a row."""

    def watched(kind: type[Detector], columns: Columns, row: int, unit: str = "token", **context: float) -> Engine:
        events = to_events(columns)
        first = engine_for(kind(), unit, context)
        for event in events[:row]:
            first.observe(event)
        second = engine_for(kind(), unit, context)
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        for event in events[row:]:
            second.observe(event)
        return second

    return watched
