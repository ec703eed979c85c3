"""What people use who have no monitor: a rolling z-score, and the limits that are handed down."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rldk.core.event import Event

from .alarm import Alarm

__all__ = ["FOLKLORE", "MAIN", "PAUSE", "PREFERENCE", "column", "fixed_thresholds", "rolling_z"]

MAIN = ("reward_mean", "kl_mean", "entropy_mean", "grad_norm", "loss", "rollout_length_mean", "value_loss")
PREFERENCE = ("loss", "grad_norm", "preference_margin", "preference_accuracy", "chosen_reward_mean", "rejected_reward_mean")
"""The main metrics of runs with rewards, and of preference training, which has none of most of them."""
WINDOW, LIMIT = 50, 4.0
PAUSE = 50
"""Rows after an alarm in which the same metric is left alone; both rules would repeat themselves in every row."""

FOLKLORE = {
    "kl_mean": (None, 0.5),  # 20 per sequence
    "kl_update": (None, 0.05),
    "entropy_mean": (0.05, 6.0),
    "clip_frac": (None, 0.3),
    "grad_norm": (None, 10.0),
    "loss": (-10.0, 10.0),
    "ratio_max": (None, 20.0),
    "explained_variance": (0.0, None),
    "reward_std": (1e-3, None),
    "truncated_frac": (None, 0.5),
    "preference_margin": (None, 10.0),
    "mismatch_kl": (None, 0.05),
    "memory_usage": (None, 0.95),
}
"""Metric -> lowest and highest value that tutorials and issue threads call fine; three rows in a row outside are an alarm."""
IN_A_ROW = 3
SEQUENCE_KL = 20.0


def column(events: Sequence[Event], name: str) -> np.ndarray:
    return np.array([event.metrics.get(name, np.nan) for event in events])


def _paused(rows: np.ndarray, what: str) -> list[Alarm]:
    alarms: list[Alarm] = []
    for row in rows.tolist():
        if not alarms or row - alarms[-1][0] >= PAUSE:
            alarms.append((row, "warning", what))
    return alarms


@np.errstate(over="ignore", invalid="ignore")
def rolling_z(events: Sequence[Event], names: Sequence[str] = MAIN, first: int = WINDOW) -> list[Alarm]:
    """Values more than four standard deviations from the mean of the fifty before; early in a run, from the `first` on, of all
    before."""
    alarms: list[Alarm] = []
    for name in names:
        values = column(events, name)
        there = np.flatnonzero(np.isfinite(values))
        if len(there) <= first:
            continue
        known = values[there]
        means, spreads = _before(known, first)
        z = (known[first:] - means) / np.maximum(spreads, 1e-12 + 1e-9 * np.abs(means))
        alarms += _paused(there[first:][np.abs(z) > LIMIT], name)
    return sorted(alarms)


def _before(known: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the values before each, from the `first` on: of fifty, or of all if they are fewer."""
    early = [known[:count] for count in range(first, min(WINDOW, len(known)))]
    full = np.lib.stride_tricks.sliding_window_view(known, WINDOW)[:-1] if len(known) > WINDOW else np.empty((0, WINDOW))
    means = np.concatenate([[part.mean() for part in early], full.mean(axis=1)])
    return means, np.concatenate([[part.std() for part in early], full.std(axis=1)])


def fixed_thresholds(events: Sequence[Event], by_sequence: bool) -> list[Alarm]:
    """Three rows in a row outside of the limits that are handed down; what is not finite is outside."""
    alarms: list[Alarm] = []
    for name, (low, high) in FOLKLORE.items():
        values = column(events, name)
        there = np.flatnonzero([name in event.metrics for event in events])
        if not len(there):
            continue
        known = values[there]
        if name == "kl_mean" and by_sequence:
            high = SEQUENCE_KL
        outside = ~np.isfinite(known)
        if low is not None:
            outside |= known < low
        if high is not None:
            outside |= known > high
        run = np.convolve(outside, np.ones(IN_A_ROW), "full")[: len(outside)] >= IN_A_ROW
        alarms += _paused(there[run], name)
    return sorted(alarms)
