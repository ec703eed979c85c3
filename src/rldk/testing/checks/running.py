"""How checks are run, and how they put a stream through a detector."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from rldk.core.event import Event
from rldk.detectors.base import Detector
from rldk.judge.engine import Engine
from rldk.testing.odd_streams import wild

__all__ = ["Make", "name_of", "quietly", "run", "told", "wild_streams"]

Make = Callable[[], Detector]
"""A detector's class, or anything that builds one when it is called."""


def quietly(check: Callable[..., None], *arguments: Any) -> None:
    """Run a check; a warning, such as numpy's of an overflow, fails it, and so does any exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            check(*arguments)
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"{name_of(check)}: {type(error).__name__}: {error}") from error


def name_of(check: Callable[..., None]) -> str:
    """What a check is called."""
    return check.__name__.removeprefix("check_")


def run(detector: Detector, events: Iterable[Event]) -> Engine:
    """Put events through a detector, as a scan would."""
    engine = Engine([detector])
    for event in events:
        engine.observe(event)
    return engine


def told(engine: Engine) -> str:
    """All that an engine has found and knows, to compare by."""
    return json.dumps([[anomaly.to_dict() for anomaly in engine.anomalies], engine.state_dict()])


def wild_streams(detector: Detector, count: int = 4) -> Iterator[list[Event]]:
    """Wild streams of the metrics that a detector looks at."""
    return (list(_wild(detector.all_metrics(), seed)) for seed in range(count))


@lru_cache(maxsize=8)
def _wild(names: tuple[str, ...], seed: int) -> tuple[Event, ...]:
    return tuple(wild(names, seed))
