"""Which rows of a file belong to which run: restarts, resumes and interleaved runs, separated by their steps."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

__all__ = ["Split", "split_runs"]

_MOST_RUNS = 1000
_MOST_WAITING = 32


@dataclass(slots=True)
class Split:
    """Row numbers of each run in the order of its steps, and what had to be decided on the way."""

    runs: list[npt.NDArray[np.intp]]
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Track:
    """One run while its rows are being collected."""

    rows: list[int]
    steps: list[int]
    first_shape: int
    parent: _Track | None = None
    concurrent: bool = False
    gap: int = 1

    @property
    def start(self) -> int:
        return self.steps[0]

    @property
    def last(self) -> int:
        return self.steps[-1]

    def expected(self) -> int:
        """The step that should come next, by the distance of the last two."""
        return self.last + self.gap

    def add(self, row: int, step: int) -> None:
        if self.steps and step != self.last:
            self.gap = step - self.last
        self.rows.append(row)
        self.steps.append(step)


def split_runs(steps: npt.NDArray[np.int64], shapes: npt.NDArray[np.int32]) -> Split:
    """Split the rows of one file into runs by their steps.

    - Steps that never fall are one run; several rows of one step stay together.
    - Steps that fall, but of which none comes twice with the same keys, are one run whose rows are out of order.
    - A fall to the first step, or a first step that comes again with the same keys, is a restart: another run.
    - A fall to the middle of a run is a resume: the rows after it replace those they repeat.
    - A fall after which both lines of steps go on is two runs written into one file at the same time.
    - Steps that always fall do not separate runs: they are one run, whose rows are sorted.
    """
    if len(steps) < 2 or bool(np.all(np.diff(steps) > 0)):
        return Split([np.arange(len(steps), dtype=np.intp)])
    if len(np.unique(np.stack([steps, shapes.astype(np.int64)]), axis=1).T) == len(steps):
        in_order = bool(np.all(np.diff(steps) >= 0))
        notes = [] if in_order else ["rows were out of order: sorted by step"]
        return Split([np.argsort(steps, kind="stable").astype(np.intp)], notes)
    if bool(np.all(np.diff(steps) >= 0)) and _repeats_beyond_first(steps, shapes):
        return Split([np.arange(len(steps), dtype=np.intp)])
    tracks = _collect(steps.tolist(), shapes.tolist())
    if tracks is None:
        notes = [f"steps start over more than {_MOST_RUNS} times, which no run does: rows were sorted by step"]
        return Split([np.argsort(steps, kind="stable").astype(np.intp)], notes)
    return _finish(tracks)


def _repeats_beyond_first(steps: npt.NDArray[np.int64], shapes: npt.NDArray[np.int32]) -> bool:
    """Whether another step than the first comes again with the same keys: then there are several rows per step."""
    later = np.flatnonzero(steps != steps[0])
    again = (np.diff(steps[later]) == 0) & (np.diff(shapes[later]) == 0)
    return bool(again.any())


def _collect(steps: list[int], shapes: list[int]) -> list[_Track] | None:
    """The runs as their rows come; `None` where there are more than there can be."""
    tracks = [_Track([0], [steps[0]], shapes[0])]
    current = tracks[0]
    waiting: list[_Track] = []
    for row in range(1, len(steps)):
        step = steps[row]
        target = _choose(step, shapes[row], current, waiting)
        if target is None:
            target = _Track([], [], shapes[row], parent=current, gap=current.gap)
            tracks.append(target)
            if len(tracks) > _MOST_RUNS:
                return None
            waiting = [track for track in [*waiting, current] if track.concurrent or track is current]
        elif target is not current:
            target.concurrent = current.concurrent = True
            waiting = [track for track in [*waiting, current] if track is not target]
        target.add(row, step)
        current = target
        waiting = [track for track in waiting if track.concurrent or track.last > current.last][-_MOST_WAITING:]
    return tracks


def _choose(step: int, shape: int, current: _Track, waiting: list[_Track]) -> _Track | None:
    """The run a row belongs to; `None` where it begins a new one."""
    if step == current.expected():
        return _longest_waiting([current, *waiting], step) if current.concurrent else current
    heirs = [track for track in waiting if step == track.expected()]
    if heirs:
        return _longest_waiting(heirs, step)
    if step > current.last:
        return current
    if step == current.last:
        again = len(current.steps) == 1 and shape == current.first_shape
        return None if again else current
    return None


def _longest_waiting(tracks: list[_Track], step: int) -> _Track:
    return min((track for track in tracks if track.expected() == step), key=lambda track: track.rows[-1])


def _finish(tracks: list[_Track]) -> Split:
    """Join resumes to the run they resume; the rest are runs."""
    notes: list[str] = []
    runs: dict[int, _Track] = {}
    for track in tracks:
        parent = track.parent
        while parent is not None and id(parent) not in runs:
            parent = parent.parent
        if parent is not None and not track.concurrent and not parent.concurrent and track.start > parent.start:
            stale = sum(1 for step in parent.steps if step >= track.start)
            notes.append(f"resumed at step {track.start}: {stale} earlier rows from there on were replaced")
            kept = [(row, step) for row, step in zip(parent.rows, parent.steps, strict=True) if step < track.start]
            parent.rows = [row for row, _ in kept] + track.rows
            parent.steps = [step for _, step in kept] + track.steps
        else:
            runs[id(track)] = track
    found = list(runs.values())
    interleaved = sum(track.concurrent for track in found)
    if interleaved:
        notes.append(f"{interleaved} runs were written into this file at the same time; they are separated by their steps")
    if len(found) - interleaved > 1:
        notes.append(f"{len(found)} runs follow each other in this file: the step starts over")
    return Split([np.array(track.rows, dtype=np.intp) for track in found], notes)
