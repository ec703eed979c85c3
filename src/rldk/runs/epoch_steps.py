"""Steps that start over with each epoch, counted on from one epoch to the next."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rldk.runs.table import Column, Rows

__all__ = ["count_over_epochs"]

Steps = npt.NDArray[np.int64]


def count_over_epochs(steps: Steps, own: npt.NDArray[np.bool_], epoch: Column, named: list[Rows]) -> list[str]:
    """Count the steps of each run on, in place, where they start over with each epoch; returns a note if there are any.

    `own` marks the rows that log a step; the others keep the step of the row before them.
    """
    counted = False
    for rows in named:
        stepped = own[rows]
        if not stepped.any():
            continue
        chosen = rows[stepped]
        first_of_epoch = _offsets(steps[chosen], epoch.values[chosen])
        if first_of_epoch is not None:
            before = np.maximum(np.cumsum(stepped) - 1, 0)
            steps[rows] = (steps[chosen] + first_of_epoch)[before]
            counted = True
    return ["the step starts over with each epoch; steps are counted on"] if counted else []


def _offsets(steps: Steps, epochs: npt.NDArray[np.float64]) -> Steps | None:
    """What each row's step is raised by; `None` unless the step falls wherever the epoch rises, and it rises by one.

    An epoch that falls is a restart or a resume of the run: its rows have the steps of that epoch again.
    """
    if not (np.isfinite(epochs) & (epochs == np.floor(epochs))).all():
        return None
    rises = np.flatnonzero(np.diff(epochs) > 0)
    if not len(rises) or (np.diff(epochs)[rises] != 1).any() or (np.diff(steps)[rises] >= 0).any():
        return None
    numbers, places = np.unique(epochs, return_inverse=True)
    last = np.full(len(numbers), steps.min())
    np.maximum.at(last, places, steps)
    length = last + (steps.min() == 0)
    if length.astype(np.float64).sum() > 2**62:
        return None
    offsets: Steps = (np.cumsum(length) - length)[places]
    return offsets
