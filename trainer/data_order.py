"""Which records a step takes: a function of the seed and the step, so that a checkpoint needs no position in the data."""

from __future__ import annotations

import math

import numpy as np


def batch_indices(n: int, global_batch: int, step: int, seed: int) -> list[int]:
    """The records of a step (from 0) for all processes together: each epoch is a permutation of its own.

    A function of the step, so that the data position needs no place in a checkpoint. The last, smaller batch of an epoch
    is filled from the next one.
    """
    first = step * global_batch
    found: list[int] = []
    while len(found) < global_batch:
        epoch, offset = divmod(first + len(found), n)
        found += _order(n, seed, epoch)[offset : offset + global_batch - len(found)]
    return found


_ORDERS: dict[tuple[int, int, int], list[int]] = {}


def _order(n: int, seed: int, epoch: int) -> list[int]:
    key = (n, seed, epoch)
    if key not in _ORDERS:
        if len(_ORDERS) > 1:
            _ORDERS.pop(next(iter(_ORDERS)))
        _ORDERS[key] = np.random.default_rng((seed & 0xFFFFFFFF, 7919, epoch)).permutation(n).tolist()
    return _ORDERS[key]


def steps_in(n: int, global_batch: int, epochs: int, max_steps: int | None) -> tuple[int, int]:
    """How many steps an epoch has, and how many will be made in all."""
    if n < 1:
        raise ValueError("The data set is empty: nothing to train on.")
    each = max(1, math.ceil(n / global_batch))
    return each, min(each * epochs, max_steps) if max_steps else each * epochs
