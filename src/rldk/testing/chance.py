"""Runs in which only chance acts, and runs that learn late: a judge must hardly ever call them critical.

    for kind in CHANCE:
        share = share_of_criticals(judge, kind, streams=1000)      # at most 0.01

The kinds: white noise; autocorrelated noise (AR 0.9); white noise on a random walk whose steps are a tenth of its spread; and a
reward that is noise for a third to five sixths of the run and then rises. Reward, KL, entropy, length and gradient norm are all
of one kind; for the late learner only the reward is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.testing.streams.noise import FloatArray, autoregress

__all__ = ["CHANCE", "ROWS", "chance_stream", "chance_streams", "share_of_criticals"]

ROWS = 300
MEMORY = 0.9
STEP = 0.1

_SCALES = (0.05, 0.3, 1.0)
_ZEROS = (-5.0, 0.0, 0.4, 10.0)


def _white(rng: np.random.Generator, rows: int) -> FloatArray:
    return rng.standard_normal(rows)


def _autocorrelated(rng: np.random.Generator, rows: int) -> FloatArray:
    return autoregress(rng.standard_normal(rows), MEMORY)


def _walk(rng: np.random.Generator, rows: int) -> FloatArray:
    return np.asarray(rng.standard_normal(rows) + STEP * np.cumsum(rng.standard_normal(rows)))


def _late(rng: np.random.Generator, rows: int) -> FloatArray:
    start = rng.integers(rows // 3, 5 * rows // 6)
    return np.asarray(0.5 * rng.standard_normal(rows) + 0.05 * np.maximum(np.arange(rows) - start, 0))


CHANCE: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "white noise": _white,
    "autocorrelated noise": _autocorrelated,
    "random walk": _walk,
    "late learner": _late,
}
"""The kinds of chance: functions that draw a series with standard deviation 1."""


def chance_stream(kind: str, seed: int, rows: int = ROWS) -> list[Event]:
    """One run of a kind: the metrics that most logs hold, KL in nats per token."""
    rng = np.random.default_rng([seed, len(kind)])
    draw = CHANCE[kind]
    beside = _white if kind == "late learner" else draw
    reward = rng.choice(_SCALES) * draw(rng, rows) + rng.choice(_ZEROS)
    kl, entropy, length, gradient, spread = (beside(rng, rows) for _ in range(5))
    columns = {
        "reward_mean": reward,
        "reward_std": 0.4 * np.exp(0.05 * spread),
        "kl_mean": 0.1 * np.exp(0.2 * kl),
        "entropy_mean": np.exp(0.1 * entropy),
        "rollout_length_mean": 200.0 * np.exp(0.1 * length),
        "grad_norm": 0.5 * np.exp(0.2 * gradient),
        "loss": 0.01 * gradient,
        "lr": np.full(rows, 1e-5),
    }
    info = {"reductions": {"kl_mean": "token"}}
    return [Event(row, {name: float(values[row]) for name, values in columns.items()}, model_info=info) for row in range(rows)]


def chance_streams(kind: str, streams: int, first: int = 0) -> Iterator[list[Event]]:
    """`streams` runs of a kind, with consecutive seeds from `first` on."""
    return (chance_stream(kind, seed) for seed in range(first, first + streams))


def share_of_criticals(
    judge: Callable[[Sequence[Event]], Sequence[Anomaly]], kind: str, streams: int = 1000, first: int = 0
) -> float:
    """The share of runs of a kind in which a judge finds something critical."""
    found = sum(
        any(anomaly.severity == "critical" for anomaly in judge(events)) for events in chance_streams(kind, streams, first)
    )
    return found / streams if streams else math.nan
