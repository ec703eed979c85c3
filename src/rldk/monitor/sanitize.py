"""Events as the monitor can use them: what is not a metric, a step or a note is left out of an event, and the rest is kept."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from typing import Any

from rldk.core.event import Event
from rldk.core.jsonio import to_number, to_step
from rldk.core.text import clean

__all__ = ["Sanitizer"]

_log = logging.getLogger("rldk")
_MAX_NAMES = 10_000
_MAX_NAME = 500  # characters
_MAX_SAID = 20
_MAPPINGS = ("rng", "data_slice", "model_info", "extra")


class Sanitizer:
    """Makes the events of one run usable, whatever a training hands over.

    A metric that is not a number is left out, and so are metrics beyond the first ten thousand different names of a run. A
    step that is not a whole number is that of the event before. What was changed is a note of the event, the first time.
    """

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._said: set[str] = set()
        self._step = 0

    def event(self, given: Event) -> Event:
        """The event itself if nothing is wrong with it; otherwise a new one without what is."""
        metrics, kinds = given.metrics, (given.rng, given.data_slice, given.model_info, given.extra)
        if (
            type(metrics) is dict and set(map(type, metrics.values())) <= _FLOAT and type(given.step) is int
            and metrics.keys() <= self._names and set(map(type, kinds)) == _DICT and type(given.notes) is list
            and (given.wall_time is None or type(given.wall_time) is float) and not given.nulls
            and to_step(given.step) is not None
        ):  # fmt: skip
            self._step = given.step
            return given
        return self._cleaned(given)

    def _cleaned(self, given: Event) -> Event:
        found: list[str] = []
        step = self._step_of(given, found)
        metrics, nulls = self._metrics_of(given, found)
        time = _number(given.wall_time)
        event = replace(
            given, step=step, metrics=metrics, nulls=nulls, wall_time=time if time is not None and isfinite(time) else None,
            notes=_notes_of(given.notes), **{name: _mapping(getattr(given, name)) for name in _MAPPINGS},
        )  # fmt: skip
        event.notes += [note for note in found if self._is_new(note)]
        return event

    def step(self, given: Any) -> int:
        """A step as it is given; that of the last event where it is not one."""
        found = _step(given)
        return self._step if found is None else found

    def _step_of(self, given: Event, found: list[str]) -> int:
        step = _step(given.step)
        if step is None:
            found.append(f"The step {_shown(given.step)} is not a whole number: the step before it is used.")
            return self._step
        self._step = step
        return step

    def _metrics_of(self, given: Event, found: list[str]) -> tuple[dict[str, float], tuple[str, ...]]:
        metrics: dict[str, float] = {}
        handed: Any = given.metrics
        if not isinstance(handed, Mapping):
            found.append(f"The metrics are {_shown(handed)}, and not a mapping: they are left out.")
            handed = {}
        nulls = [name for name in _sequence(given.nulls) if isinstance(name, str)]
        for key, value in handed.items():
            name = key if type(key) is str and len(key) <= _MAX_NAME else clean(key, _MAX_NAME)
            if name not in self._names:
                if len(self._names) >= _MAX_NAMES:
                    found.append(f"The run has more than {_MAX_NAMES} different metrics: further ones are left out.")
                    continue
                self._names.add(name)
            number = _number(value)
            if number is not None:
                metrics[name] = number
            elif value is None:
                nulls.append(name)
            else:
                found.append(f"The metric {clean(name, 80)} is {_shown(value)}, and not a number: it is left out.")
        return metrics, tuple(dict.fromkeys(nulls))

    def _is_new(self, note: str) -> bool:
        if note in self._said or len(self._said) >= _MAX_SAID:
            return False
        self._said.add(note)
        _log.warning("rldk: %s", note)
        return True


_FLOAT = {float}
_DICT = {dict}


def _number(value: Any) -> float | None:
    try:
        return to_number(value)
    except Exception:  # noqa: BLE001  an object of the training's own may raise anything when it is asked for its number
        return None


def _step(value: Any) -> int | None:
    try:
        return to_step(value)
    except Exception:  # noqa: BLE001  as above
        return None


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _notes_of(notes: Any) -> list[str]:
    given = [notes] if isinstance(notes, str) else _sequence(notes)
    return [note if isinstance(note, str) else clean(note, 1000) for note in given]


def _sequence(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _shown(value: Any) -> str:
    """A value in a few words: its type, and itself where that is short."""
    try:
        shown = clean(repr(value) if not hasattr(value, "shape") else f"of shape {tuple(value.shape)}", 40)
    except Exception:  # noqa: BLE001  as above
        shown = ""
    return f"{type(value).__name__} {shown}".rstrip()
