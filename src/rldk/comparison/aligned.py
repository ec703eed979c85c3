"""One metric of two groups of runs on common steps, in units in which a difference of a few hundredths is slight; and what keeps
runs from being compared: a metric in different units, and trainings of different kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf

import numpy as np
import numpy.typing as npt

from rldk.comparison.mean_curve import FloatArray, cell_means
from rldk.core.catalog import entry_of
from rldk.core.text import listed
from rldk.runs.run import Run
from rldk.runs.table import ABSENT
from rldk.signals.kl import UNITS

__all__ = ["COMPARED", "Aligned", "align", "final_level", "logged_rows", "other_units", "rolling_mean", "why_unlike"]

COMPARED = (
    "reward_mean", "reward_std", "eval_reward_mean", "kl_mean", "kl_mean_per_sequence", "kl_update", "entropy_mean", "clip_frac",
    "rollout_length_mean", "truncated_frac", "eos_frac", "grad_norm", "policy_grad_norm", "value_grad_norm", "value_loss", "loss",
    "explained_variance", "reward_zero_std_frac", "preference_margin", "preference_accuracy", "chosen_reward_mean",
    "rejected_reward_mean", "chosen_logp_mean", "rejected_logp_mean",
)  # fmt: skip
"""The metrics by which runs are compared: levels of the training, not extremes, settings or the machine."""

_SHARES = frozenset(
    {"clip_frac", "truncated_frac", "eos_frac", "explained_variance", "preference_accuracy", "reward_zero_std_frac"}
)
_NO_ZERO = (
    "reward_mean", "eval_reward_mean", "chosen_", "rejected_", "preference_margin", "loss",
)  # fmt: skip
"""Metrics whose zero means nothing: only differences of them do."""

_KINDS = {"rl": "reinforcement learning", "preference": "preference training", "supervised": "supervised training"}

_LAST_ROWS = 5  # what a level is the median of
_MAX_WINDOW, _MIN_WINDOW, _WINDOWS_PER_RUN = 8, 3, 8


@dataclass(frozen=True, slots=True)
class Aligned:
    """A metric of two groups on common steps: the runs of each group as rows, in comparable units and as logged."""

    metric: str
    steps: npt.NDArray[np.int64]
    left: FloatArray
    right: FloatArray
    raw_left: FloatArray
    raw_right: FloatArray
    window: int


def align(metric: str, left: Sequence[Run], right: Sequence[Run]) -> Aligned | None:
    """The metric on the steps that all of these runs share; `None` where one has no such metric, or they share too little.

    The run with the fewest rows gives the steps; what another run logged between two of them is averaged.
    """
    runs = [*left, *right]
    if any(metric not in run.columns for run in runs):
        return None
    rows = [logged_rows(run, metric) for run in runs]
    if any(not len(steps) for steps, _ in rows):
        return None
    first, last = max(steps[0] for steps, _ in rows), min(steps[-1] for steps, _ in rows)
    inside = [steps[(steps >= first) & (steps <= last)] for steps, _ in rows]
    grid = min(inside, key=len)
    window = int(np.clip(len(grid) // _WINDOWS_PER_RUN, _MIN_WINDOW, _MAX_WINDOW))
    if len(grid) < window + 5:
        return None
    raw = np.array([_on(grid, steps, values) for steps, values in rows])
    scaled = _comparable(metric, raw, window)
    if scaled is None:
        return None
    count = len(left)
    return Aligned(metric, grid, scaled[:count], scaled[count:], raw[:count], raw[count:], window)


def logged_rows(run: Run, metric: str) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """The steps at which a metric was logged, in order, and its values."""
    column = run.columns[metric]
    logged = column.state != ABSENT
    steps, values = run.steps[logged], column.values[logged]
    order = np.argsort(steps, kind="stable")
    return steps[order], values[order]


def final_level(run: Run, metric: str, until: float = inf) -> float | None:
    """The median of the last five values of a metric, up to a step; `None` where it has none, NaN where one is not finite."""
    values = run.numbers(metric, until)[-_LAST_ROWS:]
    return float(np.median(values)) if len(values) else None


def _on(grid: npt.NDArray[np.int64], steps: npt.NDArray[np.int64], values: FloatArray) -> FloatArray:
    """The mean of the values between each step of the grid and the one before it; NaN where there is none."""
    places = np.searchsorted(grid, steps)
    inside = (places < len(grid)) & (steps > 2 * grid[0] - grid[min(1, len(grid) - 1)])
    return cell_means(places[inside], values[inside], np.full(len(grid), np.nan))


def _comparable(metric: str, raw: FloatArray, window: int) -> FloatArray | None:
    """Shares as they are; metrics without a zero in units of their range; others on a scale that ends logarithmic."""
    if metric in _SHARES or ((entry := entry_of(metric)) is not None and entry.unit == "fraction"):
        return raw
    finite = np.where(np.isfinite(raw), raw, np.nan)
    if metric.startswith(_NO_ZERO):
        levels = np.concatenate([rolling_mean(row[np.isfinite(row)], window) for row in raw])
        if not len(levels):
            return None
        unit = float(np.quantile(levels, 0.95) - np.quantile(levels, 0.05))
        return raw / unit if unit > 0 else None
    early = np.abs(finite[:, : max(6, raw.shape[1] // 4)])
    unit = float(np.nanmedian(early)) if np.isfinite(early).any() else 0.0
    unit = unit or (float(np.nanmean(np.abs(finite))) if np.isfinite(finite).any() else 0.0)
    return np.asarray(np.arcsinh(raw / unit)) if unit > 0 else None


def rolling_mean(values: FloatArray, window: int) -> FloatArray:
    """The means of `window` neighbouring values; none where there are fewer."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    return (sums[window:] - sums[:-window]) / window if len(values) >= window else np.zeros(0)


def other_units(metric: str, runs: Sequence[Run]) -> bool:
    """Whether some of these runs have a metric in nats per token, and others in nats per response."""
    entry = entry_of(metric)
    return entry is not None and entry.unit == "nats" and len({_per(metric, run) for run in runs} - {""}) > 1


def why_unlike(groups: Mapping[str, Sequence[Run]]) -> list[str]:
    """The notes of a comparison: one per metric left out because its units differ, and one if the kinds of training do."""
    runs = [run for members in groups.values() for run in members]
    said = []
    for metric in (one for one in COMPARED if other_units(one, runs)):
        units = _named(groups, partial(_per, metric))
        where = listed([f"per {per} in {listed(names)}" for per, names in units.items()])
        said.append(f"{metric} is left out: it is {where}.")
    kinds = _named(groups, lambda run: _KINDS.get(run.kind, ""))
    if len(kinds) > 1:
        which = listed([f"{listed(names)} {'is' if len(names) == 1 else 'are'} {kind}" for kind, names in kinds.items()])
        said.append(f"The runs are of different kinds: {which}. Metrics that both log may not mean the same.")
    return said


def _per(metric: str, run: Run) -> str:
    return UNITS.get(run.coverage.reductions.get(metric, ""), "") if metric in run.columns else ""


def _named(groups: Mapping[str, Sequence[Run]], what: Callable[[Run], str]) -> dict[str, list[str]]:
    """The names of the groups by a property of their runs, where it is known."""
    found: dict[str, list[str]] = {}
    for name, runs in groups.items():
        for value in dict.fromkeys(map(what, runs)):
            if value:
                found.setdefault(value, []).append(name)
    return found
