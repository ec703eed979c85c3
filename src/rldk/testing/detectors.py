"""What every detector promises, as checks that can be run over one: over each of rldk's, and over yours.

    for name, check in yield_detector_checks(MyDetector):
        check()

A check raises `AssertionError` with what it found. They take a second or two together.
"""

from __future__ import annotations

import copy
import json
import pickle
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import cycle, islice
from math import inf, isfinite, nan
from typing import Any

from rldk.core.anomaly import SEVERITIES, Anomaly
from rldk.core.detector import COMMON_SETTINGS, SECTIONS, Detector, View
from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.core.series import Series, SeriesByName
from rldk.forensics.engine import KNOBS, Engine
from rldk.testing.odd_streams import odd_streams, wild
from rldk.testing.streams import PROFILES, healthy

__all__ = ["yield_detector_checks"]

Make = Callable[[], Detector]

_SEEDS = range(3)
_STEPS = 600
_FEW, _MANY = 2_000, 20_000


def yield_detector_checks(make: Make, sick: Sequence[Event] | None = None) -> Iterator[tuple[str, Callable[[], None]]]:
    """All checks for a detector, by name.

    Args:
        make: the detector's class, or anything that builds one when it is called.
        sick: a stream on which it must raise; without one, that it raises at all is not checked.
    """
    for check in _CHECKS:
        yield _name_of(check), partial(_quietly, check, make)
    if sick is not None:
        for sick_check in _SICK_CHECKS:
            yield _name_of(sick_check), partial(_quietly, sick_check, make, list(sick))


def _name_of(check: Callable[..., None]) -> str:
    return check.__name__.removeprefix("check_")


def _quietly(check: Callable[..., None], *arguments: Any) -> None:
    """Run a check; a warning, such as numpy's of an overflow, fails it, and so does an exception of the detector's."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            check(*arguments)
        except AssertionError:
            raise
        except Exception as error:
            raise AssertionError(f"{_name_of(check)}: {type(error).__name__}: {error}") from error


def run(detector: Detector, events: Iterable[Event]) -> Engine:
    """Put events through a detector, as a scan would."""
    engine = Engine([detector])
    for event in events:
        engine.observe(event)
    return engine


def told(engine: Engine) -> str:
    """All that an engine has found and knows, to compare by."""
    return json.dumps([[anomaly.to_dict() for anomaly in engine.anomalies], engine.state_dict()])


def _wild_streams(detector: Detector, count: int = 4) -> Iterator[list[Event]]:
    return (list(_wild(detector.all_metrics(), seed)) for seed in range(count))


@lru_cache(maxsize=8)
def _wild(names: tuple[str, ...], seed: int) -> tuple[Event, ...]:
    return tuple(wild(names, seed))


def check_has_a_name(make: Make) -> None:
    detector = make()
    assert detector.type.isidentifier() and detector.type.islower(), f"`type` {detector.type!r} is not a lower-case name"
    assert detector.tracker.strip(), "`tracker` is empty: name the family"
    assert detector.advice.strip(), "`advice` is empty: say what to do, naming the knob and the direction"


def check_documentation_is_complete(make: Make) -> None:
    page = make().documentation()
    assert page.get("title"), "the docstring has no first line"
    missing = [section for section in SECTIONS if not page.get(section)]
    assert not missing, f"the docstring lacks {', '.join(missing)}"
    assert list(page) == ["title", *SECTIONS], f"the docstring's sections are not in the order {', '.join(SECTIONS)}"


def check_settings_are_validated(make: Make) -> None:
    kind = type(make())
    if kind.__init__ is not Detector.__init__:
        return  # it takes something else than settings
    for name, setting in {**kind.settings, **COMMON_SETTINGS}.items():
        assert setting.meaning, f"setting {name!r} says nothing of its meaning"
        default = setting.default if name in kind.settings else float(getattr(kind, name))
        kind(**{name: default})
        wrong: list[Any] = ["much", None, True, nan, [1.0]]
        wrong += [] if setting.least is None else [setting.least - 1.0, -inf]
        wrong += [] if setting.most is None else [setting.most + 1.0, inf]
        wrong += [2.5, inf] if setting.whole else []
        for value in wrong:
            assert _refuses(kind, **{name: value}), f"{name}={value!r} is taken"
    assert _refuses(kind, no_such_setting=1.0), "an unknown setting is taken"
    assert _refuses(kind, severity="fatal"), "severity='fatal' is taken"
    for severity in SEVERITIES:
        kind(severity=severity)


def _refuses(kind: type[Detector], **given: Any) -> bool:
    try:
        kind(**given)
    except UsageError as error:
        return bool(str(error))
    return False


def check_keeps_everything_in_slots(make: Make) -> None:
    assert not hasattr(make(), "__dict__"), "it has a `__dict__`: put all state in `__slots__`, that it is saved with the run"


class _Recording(SeriesByName):
    """The series of a run, and which of them were asked for."""

    __slots__ = ("asked",)

    def __init__(self) -> None:
        super().__init__()
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> Series:
        self.asked.add(name)
        return super().__getitem__(name)


def check_declares_what_it_reads(make: Make) -> None:
    for stream in _wild_streams(make()):
        detector, series = make(), _Recording()
        for index, event in enumerate(stream):
            for name, value in event.metrics.items():
                series.setdefault(name, Series()).update(value, index)
            detector.update(View(event, index, event.step, series))
        hidden = series.asked - {*detector.all_metrics(), *KNOBS}
        assert not hidden, f"it looks at {sorted(hidden)}, which it names neither in `needs` nor in `watches` nor in `reads`"


def check_is_inactive_without_its_metrics(make: Make) -> None:
    detector = make()
    lacking = ["|".join(group) for group in detector.needs]
    assert detector.lacks(set()) == lacking, f"without any metric it says to lack {detector.lacks(set())}, not {lacking}"
    assert not detector.lacks(set(detector.all_metrics())), "with all of its metrics it says to lack some"
    if detector.needs:
        engine = run(detector, [Event(step, {"some/other": float(step % 7)}) for step in range(100)])
        assert not engine.anomalies, f"without its metrics it says: {engine.anomalies[0].message}"
        assert engine.inactive() == [(detector.type, lacking)]


def check_survives_odd_values(make: Make) -> None:
    for word, events in odd_streams(make().all_metrics()):
        try:
            engine = run(make(), events)
        except Exception as error:
            raise AssertionError(f"where {word}: {type(error).__name__}: {error}") from error
        _check_anomalies(engine, events, word)


def check_reports_are_complete(make: Make) -> None:
    for stream in _wild_streams(make()):
        _check_anomalies(run(make(), stream), stream, "in a wild stream")


def _check_anomalies(engine: Engine, events: Sequence[Event], word: str) -> None:
    before: dict[str, Anomaly] = {}
    (detector,) = engine.detectors
    for anomaly in engine.anomalies:
        said = f"{word}, it reports {anomaly!r}"
        assert (anomaly.type, anomaly.tracker) == (detector.type, detector.tracker), said
        assert anomaly.severity in SEVERITIES, said
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
    for stream in _wild_streams(detector):
        first = told(run(make(), stream))
        assert told(run(make(), stream)) == first, "the same events gave another result the second time"
        detector.reset()
        assert told(run(detector, stream)) == first, "after `reset` the same events gave another result"


def check_does_not_change_events(make: Make) -> None:
    for stream in _wild_streams(make(), 2):
        before = repr(stream)
        run(make(), stream)
        assert repr(stream) == before, "it changed the events that it was given"


def check_goes_on_from_a_saved_state(make: Make) -> None:
    for stream in _wild_streams(make(), 2):
        _check_breaks(make, stream)


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
    (stream,) = _wild_streams(make(), 1)
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


def check_raises_on_its_sick_stream(make: Make, sick: Sequence[Event]) -> None:
    engine = run(make(), sick)
    assert engine.anomalies, "it does not raise on the stream that was given as sick"
    _check_anomalies(engine, sick, "on its sick stream")


def check_goes_on_from_a_saved_state_when_sick(make: Make, sick: Sequence[Event]) -> None:
    _check_breaks(make, sick)


_CHECKS: tuple[Callable[[Make], None], ...] = (
    check_has_a_name,
    check_documentation_is_complete,
    check_settings_are_validated,
    check_keeps_everything_in_slots,
    check_declares_what_it_reads,
    check_is_inactive_without_its_metrics,
    check_survives_odd_values,
    check_reports_are_complete,
    check_is_silent_on_healthy_runs,
    check_is_deterministic,
    check_does_not_change_events,
    check_goes_on_from_a_saved_state,
    check_can_be_pickled_and_copied,
    check_memory_is_bounded,
)

_SICK_CHECKS: tuple[Callable[[Make, Sequence[Event]], None], ...] = (
    check_raises_on_its_sick_stream,
    check_goes_on_from_a_saved_state_when_sick,
)
