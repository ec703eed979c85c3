"""Which records a step takes: a function of the seed and the step, so that a checkpoint needs no position in the data."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Cut:
    """How the responses that a process samples in a step are divided."""

    local: int  # responses per step
    mini: int  # per update
    micro: int  # per pass through a model

    @classmethod
    def of(cls, args: argparse.Namespace) -> Cut:
        local = args.batch_size * args.accumulation_steps
        mini = local // args.mini_batches
        return cls(local, mini, min(args.batch_size, mini))

    def mini_batches(self, args: argparse.Namespace, step: int) -> Iterator[np.ndarray]:
        """The rows of each update: in order if an update takes all, else shuffled in every epoch, the same in all processes."""
        for epoch in range(args.ppo_epochs):
            order = np.arange(self.local)
            if self.mini < self.local:
                order = np.random.default_rng((args.seed & 0xFFFFFFFF, step, epoch)).permutation(self.local)
            yield from (order[first : first + self.mini] for first in range(0, self.local, self.mini))


def batch_indices(n: int, global_batch: int, step: int, seed: int) -> list[int]:
    """The records of a step (from 0) for all processes together: each epoch is a permutation of its own.

    Being a function of the step, the data position is not part of a checkpoint. The last, smaller batch of an epoch is filled
    from the next one.
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
    """The number of steps of an epoch, and of the whole run."""
    if n < 1:
        raise ValueError("The data set is empty.")
    each = max(1, math.ceil(n / global_batch))
    return each, min(each * epochs, max_steps) if max_steps else each * epochs
