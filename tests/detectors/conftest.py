"""How tests of detectors put a stream through one of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.detectors.base import Detector
from rldk.judge.engine import Engine

Columns = Mapping[str, Sequence[float | None]]


def to_events(columns: Columns) -> list[Event]:
    """Columns of values as events; `None` is not logged."""
    rows = max(map(len, columns.values()))
    return [
        Event(
            row,
            {name: float(value) for name, values in columns.items() if row < len(values) and (value := values[row]) is not None},
        )
        for row in range(rows)
    ]


def run(
    detector: Detector, columns: Columns, reductions: Mapping[str, str] | None = None, settings: Mapping[str, Any] | None = None
) -> Engine:
    engine = Engine([detector], reductions=reductions)
    engine.take_settings(settings)
    for event in to_events(columns):
        engine.observe(event)
    return engine


@pytest.fixture
def judge() -> Callable[..., list[Anomaly]]:
    """Put columns through a detector; the anomalies that it raises."""

    def judged(detector: Detector, columns: Columns, reductions: Mapping[str, str] | None = None) -> list[Anomaly]:
        return run(detector, columns, reductions).anomalies

    return judged


@pytest.fixture
def where(judge: Callable[..., list[Anomaly]]) -> Callable[..., list[tuple[int, str]]]:
    """Put columns through a detector; the rows at which it raises, with the severities."""

    def told(detector: Detector, columns: Columns, reductions: Mapping[str, str] | None = None) -> list[tuple[int, str]]:
        return [(anomaly.index, anomaly.severity) for anomaly in judge(detector, columns, reductions)]

    return told


@pytest.fixture
def told() -> Callable[..., list[tuple[int, str, str]]]:
    """Put columns through a detector; the rows at which it raises or notes, with the severities and the clauses."""

    def said(detector: Detector, columns: Columns, *known: Mapping[str, Any] | None) -> list[tuple[int, str, str]]:
        engine = run(detector, columns, *known)
        raised = [(anomaly.index, anomaly.severity, anomaly.clause) for anomaly in engine.anomalies]
        return sorted(raised + [(note.index, "note", note.clause) for note in engine.notes])

    return said


@pytest.fixture
def broken_off() -> Callable[..., list[Anomaly]]:
    """Like `judge`, with the state written as JSON and read into a new engine at a row."""

    def judged(kind: type[Detector], columns: Columns, row: int) -> list[Anomaly]:
        events = to_events(columns)
        first = Engine([kind()])
        for event in events[:row]:
            first.observe(event)
        second = Engine([kind()])
        second.load_state_dict(json.loads(json.dumps(first.state_dict())))
        for event in events[row:]:
            second.observe(event)
        return second.anomalies

    return judged


@pytest.fixture
def inactive() -> Callable[..., Any]:
    """What a detector lacks after a stream."""

    def lacking(detector: Detector, columns: Columns) -> list[tuple[str, list[str]]]:
        engine = run(detector, columns)
        assert engine.anomalies == []
        return engine.inactive()

    return lacking


@pytest.fixture
def clauses(judge: Callable[..., list[Anomaly]]) -> Callable[..., list[tuple[int, str, str]]]:
    """Put columns through a detector; the rows at which it raises, with severity and clause."""

    def told(detector: Detector, columns: Columns, reductions: Mapping[str, str] | None = None) -> list[tuple[int, str, str]]:
        return [(anomaly.index, anomaly.severity, anomaly.clause) for anomaly in judge(detector, columns, reductions)]

    return told


@pytest.fixture
def notes() -> Callable[..., list[tuple[int, str]]]:
    """Put columns through a detector that must raise nothing; the rows and clauses of its notes."""

    def noted(detector: Detector, columns: Columns, reductions: Mapping[str, str] | None = None) -> list[tuple[int, str]]:
        engine = run(detector, columns, reductions)
        assert engine.anomalies == []
        return [(note.index, note.clause) for note in engine.notes]

    return noted
