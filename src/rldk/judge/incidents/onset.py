"""Where a defect started: a metric is followed back through the last rows to where it was still usual."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from statistics import median
from typing import Any

from rldk.core.anomaly import Anomaly
from rldk.detectors.base import Detector

__all__ = ["Recent"]

_ROWS = 256
_MIN_VALUES = 16
_SPREADS = 3.0  # spreads of the previous rows beyond which a level is unusual
_MARGIN = 2  # additional rows, since the level is a median of five
_FEW = 4  # a detector with more metrics than this follows none of them
_MANY = 64  # rows with more metrics than this keep only those that are needed
_LASTED = ("rows_down", "rows")  # evidence that says for how many rows it has held


class Recent:
    """The metrics that detectors need, for the last rows; bounded, and read only when something is raised.

    A detector waits until a fall is beyond doubt, so the step before its condition held may be in the middle of the fall.
    The last good step is the one before the metric left the range of much earlier rows.
    """

    def __init__(self, detectors: Iterable[Detector]) -> None:
        needed = {detector.type: detector.needs[0] for detector in detectors if detector.needs}
        self._leads = {kind: names for kind, names in needed.items() if len(names) <= _FEW}
        self._names = frozenset(name for names in self._leads.values() for name in names)
        self._rows: deque[tuple[int, int, Mapping[str, float]]] = deque(maxlen=_ROWS)

    def take(self, index: int, step: int, metrics: Mapping[str, float]) -> None:
        """Keep what event number `index` logged, without copying; more of the same event is added to it."""
        kept = metrics if len(metrics) <= _MANY else {name: metrics[name] for name in self._names & metrics.keys()}
        rows = self._rows
        if rows and rows[-1][0] == index:
            kept = {**rows.pop()[2], **kept}
        rows.append((index, step, kept))

    def last_good_step(self, anomaly: Anomaly) -> int | None:
        """The last good step as far as these rows show; no later than the detector's own."""
        own = anomaly.last_good_step
        if own is None:
            return None
        found = [own]
        lasted = next((anomaly.evidence[key] for key in _LASTED if key in anomaly.evidence), 0.0)
        if lasted:
            began = anomaly.index - int(lasted) - _MARGIN
            if began < 0:
                return None
            found.append(self._step_at(began))
        for name in self._leads.get(anomaly.type, ()):
            rows = [(step, row[name]) for _, step, row in self._rows if name in row and isfinite(row[name])]
            departed = _departure([value for _, value in rows])
            if departed is not None:
                found.append(rows[max(departed - _MARGIN, 0)][0])
        return min(found)

    def _step_at(self, index: int) -> int:
        """The step of the event number `index`, or of the earliest that is kept."""
        return next((step for number, step, _ in reversed(self._rows) if number <= index), self._rows[0][1])

    def state_dict(self) -> list[Any]:
        """The rows as JSON can hold them."""
        return [[index, step, {name: row[name] for name in row if name in self._names}] for index, step, row in self._rows]

    def load_state_dict(self, state: Sequence[Any]) -> None:
        """Go on with the rows of `state`."""
        self._rows = deque(((index, step, dict(row)) for index, step, row in state), _ROWS)


def _departure(values: Sequence[float]) -> int | None:
    """The last place at which a series was where its older half is; `None` if it is there now, or too short to tell."""
    if len(values) < _MIN_VALUES:
        return None
    older = sorted(values[: len(values) // 2])
    usual = older[len(older) // 2]
    spread = 1.4826 * median(abs(value - usual) for value in older)
    room = _SPREADS * max(spread, 0.02 * abs(usual))
    for place in range(len(values) - 3, -1, -1):
        near = sorted(values[max(place - 2, 0) : place + 3])
        if abs(near[len(near) // 2] - usual) <= room:
            return None if place == len(values) - 3 else place
    return 0
