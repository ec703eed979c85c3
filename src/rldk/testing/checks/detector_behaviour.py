"""How a detector judges: no alarm on healthy runs, robust to odd values, complete reports, a state to resume."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import cycle, islice
from math import isfinite

from rldk.core.anomaly import SEVERITIES, Anomaly
from rldk.core.event import Event
from rldk.detectors.base import Detector
from rldk.judge.engine import Engine
from rldk.testing.checks.trial_runs import WILD_ROWS, Make, findings_of, odd_streams, run, wild, wild_streams
from rldk.testing.streams import PROFILES, healthy

_SEEDS = range(3)
_STEPS = 600


def check_survives_odd_values(make: Make) -> None:
    for word, events in odd_streams(make().all_metrics()):
        try:
            engine = run(make(), events)
        except Exception as error:
            raise AssertionError(f"where {word}: {type(error).__name__}: {error}") from error
        _check_anomalies(engine, events, word)


def check_reports_are_complete(make: Make) -> None:
    for seed, stream in enumerate(wild_streams(make())):
        _check_anomalies(_unbroken(make, seed), stream, "in a wild stream")


@lru_cache(maxsize=8)
def _unbroken(make: Make, seed: int) -> Engine:
    """A detector after one of its wild streams, for several checks."""
    *_, stream = wild_streams(make(), seed + 1)
    return run(make(), stream)


def _check_anomalies(engine: Engine, events: Sequence[Event], word: str) -> None:
    before: dict[str, Anomaly] = {}
    (detector,) = engine.detectors
    for anomaly in engine.anomalies:
        said = f"{word}, it reports {anomaly!r}"
        assert (anomaly.type, anomaly.family) == (detector.type, detector.family), said
        assert anomaly.severity in SEVERITIES, said
        assert not detector.clauses or anomaly.clause in detector.clauses, said
        assert anomaly.message.strip() and anomaly.advice.strip(), said
        assert not (isfinite(anomaly.value) and re.search(r"\bnan\b", anomaly.message)), said
        assert 0 <= anomaly.since <= anomaly.index < len(events), said
        assert anomaly.step == events[anomaly.index].step, said
        assert all(type(number) in (int, float) for number in (anomaly.value, anomaly.threshold, *anomaly.evidence.values())), (
            said
        )
        json.dumps(anomaly.to_dict())
        last = before.get(anomaly.type)
        grew = last is not None and (last.severity, anomaly.severity) == ("warning", "critical")
        over = last is not None and last.cleared_index is not None and last.cleared_index <= anomaly.index
        assert last is None or grew or over, f"{said} while it stands already"
        before[anomaly.type] = anomaly


def check_is_silent_on_healthy_runs(make: Make) -> None:
    for profile in PROFILES:
        for seed in _SEEDS:
            engine = run(make(), _healthy(profile, seed))
            for anomaly in engine.anomalies:
                raise AssertionError(f"on healthy({profile!r}, {_STEPS}, seed={seed}), at {anomaly.index}: {anomaly.message}")


@lru_cache(maxsize=16)
def _healthy(profile: str, seed: int) -> tuple[Event, ...]:
    return tuple(healthy(profile, _STEPS, seed))


def check_is_deterministic(make: Make) -> None:
    detector = make()
    for seed, stream in enumerate(wild_streams(detector)):
        first = findings_of(_unbroken(make, seed))
        detector.reset()
        if findings_of(run(detector, stream)) != first:
            assert findings_of(run(make(), stream)) == first, "the same events gave another result the second time"
            raise AssertionError("after `reset` the same events gave another result")


def check_does_not_change_events(make: Make) -> None:
    for stream in wild_streams(make(), 2):
        before = repr(stream)
        run(make(), stream)
        assert repr(stream) == before, "it changed the events that it was given"


def check_raises_on_its_sick_stream(make: Make, sick: Sequence[Event]) -> None:
    engine = run(make(), sick)
    assert engine.anomalies, "it raises nothing on the sick stream"
    _check_anomalies(engine, sick, "on its sick stream")


_FEW, _MANY = 4 * WILD_ROWS, 6 * WILD_ROWS
"""Numbers of events after which the memory is measured, at the same row of the repeated stream."""


def check_goes_on_from_a_saved_state(make: Make) -> None:
    for seed, stream in enumerate(wild_streams(make(), 2)):
        _check_breaks(make, stream, _unbroken(make, seed))


def check_goes_on_from_a_saved_state_when_sick(make: Make, sick: Sequence[Event]) -> None:
    _check_breaks(make, sick, run(make(), sick))


def _check_breaks(make: Make, stream: Sequence[Event], unbroken: Engine) -> None:
    """Save and restore after every event: the result must be the same as without."""
    detector = make()
    engine = Engine([detector])
    for event in stream:
        engine.observe(event)
        other = make()
        other.load_state_dict(json.loads(json.dumps(detector.state_dict())))
        detector.reset()
        detector.load_state_dict(other.state_dict())
    assert findings_of(engine) == findings_of(unbroken), "saved and restored in between, it gives another result"


def check_can_be_pickled_and_copied(make: Make) -> None:
    (stream,) = wild_streams(make(), 1)
    whole = findings_of(_unbroken(make, 0))
    copies: tuple[Callable[[Detector], Detector], ...] = (copy.deepcopy, _through_pickle)
    for copied in copies:
        half = len(stream) // 2
        engine = run(make(), stream[:half])
        before = findings_of(engine)
        twin = Engine([copied(engine.detectors[0])])
        twin.load_state_dict({**engine.state_dict(), "detectors": {}})
        for event in stream[half:]:
            twin.observe(event)
        assert findings_of(twin) == whole, "a copy made in the middle of a stream gives another result than the original"
        assert findings_of(engine) == before, "events given to a copy change the original"


def _through_pickle(detector: Detector) -> Detector:
    copied: Detector = pickle.loads(pickle.dumps(detector))  # noqa: S301  its own
    return copied


def check_memory_is_bounded(make: Make) -> None:
    detector = make()
    engine = Engine([detector])
    stream = wild(detector.all_metrics(), 0)
    sizes = {}
    for number, event in enumerate(islice(cycle(stream), _MANY), 1):
        engine.observe(event)
        if number in (_FEW, _MANY):
            sizes[number] = len(pickle.dumps(detector))
    few, many = sizes[_FEW], sizes[_MANY]
    assert many <= 1.05 * few + 30, f"it takes {few} bytes after {_FEW} events and {many} after {_MANY}"
