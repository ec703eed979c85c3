"""Events for pictures: read several times as fast as for the judge, which needs all that a line says."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
import numpy as np

from rldk.core.event import Event
from rldk.judge.engine import told_apart
from rldk.log.problems import LineProblems
from rldk.log.reader import parse_event
from rldk.log.tail import LogTail
from rldk.present.plots.downsample import IntArray
from rldk.present.plots.panel import FloatArray
from rldk.runs.rows import Reader

__all__ = ["Cells", "QuickTail", "cells_of", "sketch"]

Cells = dict[str, tuple[IntArray, FloatArray]]

_SKETCHED_FROM = 16 << 20
_PLACES = 400
_PIECE = 64 << 10
_MOST_SAME = 4096


class _Info(msgspec.Struct):
    run_id: str | None = None
    phase: str | None = None


class _Line(msgspec.Struct):
    """What a picture needs of a line. Anything else than the plainest shape is refused, and read the general way."""

    step: int
    metrics: dict[str, float]
    wall_time: float | None = None
    model_info: _Info = msgspec.field(default_factory=_Info)


_decode = msgspec.json.Decoder(_Line).decode


def _event(number: int, line: bytes, problems: LineProblems) -> Event | None:
    try:
        read = _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return parse_event(number, line, problems)
    info = {name: value for name, value in (("run_id", read.model_info.run_id), ("phase", read.model_info.phase)) if value}
    return Event(read.step, read.metrics, read.wall_time, model_info=info)


class Canonical:
    """Puts events into canonical terms; what is in them already passes quickly."""

    def __init__(self) -> None:
        self._reader = Reader()
        self._same: set[tuple[str, ...]] = set()

    def __call__(self, event: Event) -> Event:
        if event.model_info.get("phase", "train") != "train":
            event = told_apart(event)
        keys = tuple(event.metrics)
        if keys in self._same:
            return event
        found = self._reader.event(event) or event
        if found is event and len(self._same) < _MOST_SAME:
            self._same.add(keys)
        return found


class QuickTail(LogTail):
    """A tail whose events hold step, time, run, phase and metrics, by canonical name."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._canonical = Canonical()
        super().__init__(path)

    @property
    def position(self) -> int:
        """How many bytes of the file have been read."""
        return self._file.offset if self._file is not None else 0

    def _parsed(self, lines: Iterable[tuple[int, bytes]]) -> list[Event]:
        problems, canonical = self.problems, self._canonical
        events = (_event(number, line, problems) for number, line in lines)
        return [canonical(event) for event in events if event is not None]


def cells_of(events: list[Event]) -> Cells:
    """The metrics of events as columns; quick where rows have the same keys."""
    groups: dict[tuple[str, ...], tuple[list[int], list[float]]] = {}
    for row, event in enumerate(events):
        keys = tuple(event.metrics)
        group = groups.get(keys)
        if group is None:
            group = groups[keys] = ([], [])
        group[0].append(row)
        group[1].extend(event.metrics.values())
    parts: dict[str, list[tuple[IntArray, FloatArray]]] = {}
    for keys, (places, flat) in groups.items():
        rows = np.array(places, dtype=np.intp)
        if keys:
            for name, values in zip(keys, np.array(flat, dtype=np.float64).reshape(len(rows), len(keys)).T, strict=True):
                parts.setdefault(name, []).append((rows, values))
    return {name: found[0] if len(found) == 1 else _joined(found) for name, found in parts.items()}


def _joined(parts: list[tuple[IntArray, FloatArray]]) -> tuple[IntArray, FloatArray]:
    rows = np.concatenate([rows for rows, _ in parts])
    values = np.concatenate([values for _, values in parts])
    order = np.argsort(rows, kind="stable")
    return rows[order], values[order]


def sketch(path: Path) -> list[Event]:
    """Some events from all over a large file, for a first picture before it is read; none of a small one."""
    try:
        size = path.stat().st_size
        if size < _SKETCHED_FROM:
            return []
        events: list[Event] = []
        canonical, problems = Canonical(), LineProblems()
        with path.open("rb") as file:
            for place in np.linspace(0, max(0, size - _PIECE), _PLACES).astype(int).tolist():
                file.seek(place)
                lines = file.read(_PIECE).split(b"\n")[1 if place else 0 : -1]
                for line in lines[:4]:
                    if line and (event := _event(0, line, problems)) is not None:
                        events.append(canonical(event))
    except OSError:
        return []
    return events
