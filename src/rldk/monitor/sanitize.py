"""Events as the monitor can use them: what is not a metric, a step or a note is left out of an event, and the rest is kept."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from typing import Any

from rldk.core.catalog.axes import STEP_KEYS, is_axis
from rldk.core.event import Event
from rldk.core.jsonio import to_number, to_step
from rldk.core.text import clean
from rldk.runs.canonical import RESPONSES

__all__ = ["Sanitizer"]

_log = logging.getLogger("rldk")
_MAX_NAMES = 10_000
_MAX_NAME = 500  # characters
_MAX_SAID = 20
_MAPPINGS = ("rng", "data_slice", "model_info", "extra")


class Sanitizer:
    """Makes the events of one run usable, whatever a training hands over.

    A metric that is not a number is left out, and so are metrics beyond the first ten thousand different names of a run. A
    step that is not a whole number is that of the event before, and in a row of a training loop the one after it. What was
    changed is a note of the event and a warning, the first time.
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

    def row(self, given: Mapping[Any, Any]) -> tuple[Mapping[Any, Any], list[str]]:
        """A flat row with names of any framework, without what is not a number, and the notes about it."""
        found: dict[str, str] = {}
        unusable = [key for key, value in given.items() if value is not None and _is_metric(key) and _number(value) is None]
        for key in unusable:
            found[str(key)] = _not_a_number(key, given[key])
        row = {key: value for key, value in given.items() if key not in unusable} if unusable else given
        if "step" in given and all(_step(given.get(key)) is None for key in STEP_KEYS):
            row = {**row, "step": self._step + 1}
            found["step"] = f"The step {_shown(given['step'])} is not a whole number: the next one, {self._step + 1}, is used."
        return row, self._new(found)

    def _cleaned(self, given: Event) -> Event:
        found: dict[str, str] = {}
        step = self._step_of(given, found)
        metrics, nulls = self._metrics_of(given, found)
        time = _number(given.wall_time)
        event = replace(
            given, step=step, metrics=metrics, nulls=nulls, wall_time=time if time is not None and isfinite(time) else None,
            notes=_notes_of(given.notes), **{name: _mapping(getattr(given, name)) for name in _MAPPINGS},
        )  # fmt: skip
        event.notes += self._new(found)
        return event

    def step(self, given: Any) -> int:
        """A step as it is given; that of the last event where it is not one."""
        found = _step(given)
        return self._step if found is None else found

    def _step_of(self, given: Event, found: dict[str, str]) -> int:
        step = _step(given.step)
        if step is None:
            found["step"] = f"The step {_shown(given.step)} is not a whole number: the step before it is used."
            return self._step
        self._step = step
        return step

    def _metrics_of(self, given: Event, found: dict[str, str]) -> tuple[dict[str, float], tuple[str, ...]]:
        metrics: dict[str, float] = {}
        handed: Any = given.metrics
        if not isinstance(handed, Mapping):
            found["(metrics)"] = f"The metrics are {_shown(handed)}, not a mapping: they are left out."
            handed = {}
        nulls = [name for name in _sequence(given.nulls) if isinstance(name, str)]
        for key, value in handed.items():
            name = key if type(key) is str and len(key) <= _MAX_NAME else clean(key, _MAX_NAME)
            if name not in self._names:
                if len(self._names) >= _MAX_NAMES:
                    found["(names)"] = f"The run has more than {_MAX_NAMES} different metrics: further ones are left out."
                    continue
                self._names.add(name)
            number = _number(value)
            if number is not None:
                metrics[name] = number
            elif value is None:
                nulls.append(name)
            else:
                found[name] = _not_a_number(name, value)
        return metrics, tuple(dict.fromkeys(nulls))

    def _new(self, found: Mapping[str, str]) -> list[str]:
        """The notes about what has not been said yet, by what they are about; they are warnings too."""
        new = {about: note for about, note in found.items() if about not in self._said}
        notes = []
        for about, note in new.items():
            if len(self._said) < _MAX_SAID:
                self._said.add(about)
                _log.warning("rldk: %s", note)
                notes.append(note)
        return notes


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


def _is_metric(key: Any) -> bool:
    """Whether a key of a row is that of a metric, and does not place the row or hold its responses."""
    return isinstance(key, str) and key != RESPONSES and not is_axis(key)


def _not_a_number(name: Any, value: Any) -> str:
    return f"The metric {clean(name, 80)} is {_shown(value)}, not a number: it is left out."


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
