"""Odd and wild streams to test a detector with, and how a detector is run over them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from math import inf, nan
from typing import Any

import numpy as np

from rldk.core.event import Event
from rldk.detectors.base import Detector
from rldk.judge.engine import Engine

__all__ = ["WILD_ROWS", "Make", "constant", "findings_of", "name_of", "odd_streams", "quietly", "run", "wild", "wild_streams"]

ROWS = 120
WILD_ROWS = 300

_CONSTANTS = {
    "NaN": nan,
    "inf": inf,
    "minus inf": -inf,
    "zero": 0.0,
    "one half": 0.5,
    "negative": -3.0,
    "1e308": 1e308,
    "minus 1e308": -1e308,
    "the smallest": 5e-324,
}
_EXTREMES = (0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, -5e-324, nan, inf, -inf, 1e-3, 42.0)
_LEVELS = (0.01, 0.1, 0.5, 1.0, 10.0, 100.0)
_CHANGES = (0.0, 1e-4, 0.02, 0.3, 1.0, 1.0, 3.0, 30.0, 1e4, -1.0, nan)


def constant(names: Iterable[str], value: float, rows: int = ROWS) -> list[Event]:
    """The same value of every metric in every row."""
    metrics = dict.fromkeys(names, value)
    return [Event(step, dict(metrics)) for step in range(rows)]


def odd_streams(names: Sequence[str]) -> Iterator[tuple[str, list[Event]]]:
    """Streams of these metrics that are each odd in one way, by description."""
    for word, value in _CONSTANTS.items():
        yield f"every value is {word}", constant(names, value)
    yield "nothing is logged", [Event(step) for step in range(ROWS)]
    yield "every value is None", [Event(step, nulls=tuple(names)) for step in range(ROWS)]
    yield "one event", constant(names, 0.5, rows=1)
    yield "no event", []
    yield "the steps go backwards", list(reversed(constant(names, 0.5)))
    yield "the step stands still", [Event(7, dict.fromkeys(names, 0.5)) for _ in range(ROWS)]
    for first, then in ((1.0, 1e308), (1e308, -1e308), (0.0, 1e308), (1e-300, 1.0), (5e-324, 1e308)):
        half = constant(names, first, ROWS // 2)
        yield f"{first:g}, then {then:g}", half + [Event(ROWS // 2 + event.step, dict.fromkeys(names, then)) for event in half]
    rng = np.random.default_rng(0)
    for number in range(3):
        values = rng.choice(_EXTREMES, (ROWS, len(names))).tolist()
        yield (
            f"extremes at random, {number}",
            [Event(step, dict(zip(names, row, strict=True))) for step, row in enumerate(values)],
        )


def wild(names: Sequence[str], seed: int, rows: int = WILD_ROWS) -> list[Event]:
    """A stream in which each metric is calm at first and then jumps, dies, turns, or is not a number.

    One value in twenty is not logged, one in fifty is `NaN`, one in fifty `None`. Most detectors raise something in one of these
    streams, so that they can show whether an interrupted run gives the same result as an uninterrupted one.
    """
    rng = np.random.default_rng([seed, len(names)])
    columns = {}
    for name in names:
        level, change = rng.choice(_LEVELS), rng.choice(_CHANGES)
        noise = np.exp(rng.choice([0.0, 0.05, 0.3]) * rng.standard_normal(rows))
        onset, back = rng.integers(60, rows // 2), rng.integers(rows // 2, rows)
        changed = np.arange(rows) >= onset
        if rng.random() < 0.3:
            changed &= np.arange(rows) < back
        values = level * noise * np.where(changed, change, 1.0)
        values[rng.random(rows) < 0.02] = nan
        columns[name] = (values.tolist(), rng.random(rows))
    events = []
    for row in range(rows):
        metrics = {name: values[row] for name, (values, luck) in columns.items() if luck[row] > 0.07}
        nulls = tuple(name for name, (_, luck) in columns.items() if luck[row] < 0.02)
        events.append(Event(row * 2, metrics, nulls=nulls))
    return events


Make = Callable[[], Detector]
"""A detector's class, or anything that builds one when it is called."""


def quietly(check: Callable[..., None], *arguments: Any) -> None:
    """Run a check; any exception fails it, and so does a warning, such as numpy's about an overflow."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            check(*arguments)
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"{name_of(check)}: {type(error).__name__}: {error}") from error


def name_of(check: Callable[..., None]) -> str:
    """The name of a check."""
    return check.__name__.removeprefix("check_")


def run(detector: Detector, events: Iterable[Event]) -> Engine:
    """Put events through a detector, as a scan would."""
    engine = Engine([detector])
    for event in events:
        engine.observe(event)
    return engine


def findings_of(engine: Engine) -> str:
    """Everything that an engine has found and remembers, as text that can be compared."""
    return json.dumps([[anomaly.to_dict() for anomaly in engine.anomalies], engine.state_dict()])


def wild_streams(detector: Detector, count: int = 3) -> Iterator[list[Event]]:
    """Wild streams of the metrics that a detector looks at."""
    return (list(_wild(detector.all_metrics(), seed)) for seed in range(count))


@lru_cache(maxsize=8)
def _wild(names: tuple[str, ...], seed: int) -> tuple[Event, ...]:
    return tuple(wild(names, seed))
