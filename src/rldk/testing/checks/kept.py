"""What a detector keeps: a state that can be saved, copied and gone on from, and that does not grow."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Sequence
from itertools import cycle, islice

from rldk.core.event import Event
from rldk.detectors.base import Detector
from rldk.judge.engine import Engine
from rldk.testing.checks.running import Make, run, told, wild_streams
from rldk.testing.odd_streams import wild

__all__ = [
    "check_can_be_pickled_and_copied",
    "check_goes_on_from_a_saved_state",
    "check_goes_on_from_a_saved_state_when_sick",
    "check_memory_is_bounded",
]

_FEW, _MANY = 2_000, 6_000


def check_goes_on_from_a_saved_state(make: Make) -> None:
    for stream in wild_streams(make(), 2):
        _check_breaks(make, stream)


def check_goes_on_from_a_saved_state_when_sick(make: Make, sick: Sequence[Event]) -> None:
    _check_breaks(make, sick)


def _check_breaks(make: Make, stream: Sequence[Event]) -> None:
    """Save and restore after every single event: the end must be the same as without a break."""
    detector = make()
    engine = Engine([detector])
    for event in stream:
        engine.observe(event)
        other = make()
        other.load_state_dict(json.loads(json.dumps(detector.state_dict())))
        detector.reset()
        detector.load_state_dict(other.state_dict())
    assert told(engine) == told(run(make(), stream)), "saved and restored in between, it ends elsewhere than unbroken"


def check_can_be_pickled_and_copied(make: Make) -> None:
    (stream,) = wild_streams(make(), 1)
    whole = told(run(make(), stream))
    copies: tuple[Callable[[Detector], Detector], ...] = (copy.deepcopy, _through_pickle)
    for copied in copies:
        half = len(stream) // 2
        engine = run(make(), stream[:half])
        before = told(engine)
        twin = Engine([copied(engine.detectors[0])])
        twin.load_state_dict({**engine.state_dict(), "detectors": {}})
        for event in stream[half:]:
            twin.observe(event)
        assert told(twin) == whole, "a copy in the middle of a stream ends elsewhere than the original"
        assert told(engine) == before, "what a copy is given changes the original"


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
    assert many <= 1.1 * few + 100, f"it takes {few} bytes after {_FEW} events and {many} after {_MANY}"
