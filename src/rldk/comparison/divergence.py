"""Where two runs part ways: the first difference that lasts and that the noise of the runs does not explain.

For each metric, the mean difference over a window of up to eight rows is divided by what would be expected of two runs of the
same setting: the noise of such a mean, measured between neighbouring rows of each run, before the window or in it, whichever is
more, and doubled for autocorrelation; the differences that the two runs had before that window; for groups, the spread between
their seeds; and five hundredths, below which a difference does not matter. The quotient is the *distance*.

A slow drift would hide itself among the differences before the window. So there is a second distance: the smallest difference
over a sixth of the rows, if the same run is ahead in all of them, divided by the same noise, with the spread of earlier
differences around lines of that length in place of the differences themselves. A drift follows such lines, and autocorrelated
noise does not. The larger of the two counts.

Two seeds of one setting differ by more than the noise of their rows, so the distance is not read from a normal distribution. How
far apart two healthy seeds come over all metrics and all steps was measured on the corpus: the logarithm of the largest distance
has the mean and the spread below, and the tails of a t distribution with four degrees of freedom. That gives the chance of a
false alarm for the whole comparison, and not for one metric at one step. Comparisons of more metrics or longer runs are corrected
for their number of windows.

The detectors know differences that no mean shows. So a critical finding in one run that the other does not have is a divergence,
too, and so is a warning while the metrics are parting. A setting that was the same and then is not needs no statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import inf, isfinite, log, nan, sqrt
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from rldk.comparison.aligned import COMPARED, Aligned, align, final_level, other_units, rolling_mean
from rldk.comparison.mean_curve import FloatArray
from rldk.core.anomaly import Anomaly
from rldk.detectors.table import BY_TYPE
from rldk.judge.result import Result
from rldk.runs.run import Run

__all__ = ["CERTAIN", "Divergence", "chance_of", "distances", "divergences", "largest_distance"]

CERTAIN = 0.05 / 3  # the chance of a false alarm: distances, findings and supported warnings share 5 % for the whole comparison
_LOG_MEAN, _LOG_SPREAD, _WINDOWS = 1.04, 0.30, 120  # of healthy seeds of the tune split: `benchmarks/detection/seeds.py --null`
_FINDING = 0.99  # no pair of healthy seeds of the tune split has a critical finding that its partner has not
_CORROBORATED = 0.06  # the chance up to which a distance supports a warning that only one run has
_SCHEDULES = ("policy_lr", "lr", "value_lr", "kl_coef", "clip_range", "temperature", "entropy_coef")
_SAME, _SCHEDULE_APART = 1e-6, 0.2  # the share up to which a setting is the same in two runs, and that by which it must differ
_NOISE, _FLOOR, _PRIOR_ROWS, _FIRST_ROWS = 2.0, 0.05, 10, 8
_SPANS_PER_RUN, _MIN_SPAN_WINDOWS = 6, 2  # a drift must last for a sixth of the rows, and for two windows


@dataclass(frozen=True, slots=True)
class Divergence:
    """A metric in which a run leaves another: from `step` on, beyond doubt at `certain_step`.

    `left` and `right` are the levels of the two at that time; `confidence` is 1 minus the chance that two seeds of one setting
    get this far apart in any metric at any step. `finding` is the type of an anomaly that only `found_in`, `left` or
    `right`, has, where that is the difference.
    """

    metric: str
    step: int
    certain_step: int
    left: float
    right: float
    distance: float
    confidence: float
    finding: str = ""
    found_in: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def divergences(left: Sequence[Result], right: Sequence[Result], certain: float = CERTAIN) -> list[Divergence]:
    """Where two groups of runs part, the first one first; empty where noise explains all differences."""
    runs = [[result.run for result in group] for group in (left, right)]
    found = [aligned for metric in _metrics(*runs) if (aligned := align(metric, *runs)) is not None]
    windows = _windows(found)
    parted = [one for aligned in found if (one := _parting(aligned, windows, certain)) is not None]
    slight = [one for aligned in found if (one := _parting(aligned, windows, _CORROBORATED)) is not None]
    near = min((one.certain_step for one in slight), default=None)
    parted += [*_findings(left, right, near, "left"), *_findings(right, left, near, "right")]
    parted += [one for name in _SCHEDULES if (same := align(name, *runs)) and (one := _rescheduled(same)) is not None]
    first: dict[str, Divergence] = {}
    for one in sorted(parted, key=lambda one: (one.certain_step, one.finding != "", -one.distance)):
        first.setdefault(one.metric, one)
    return list(first.values())


def _findings(group: Sequence[Result], other: Sequence[Result], near: int | None, side: str) -> list[Divergence]:
    """What more than half of a group's runs have, and no run of the other group: what is critical, and warnings that come when
    the metrics have begun to part (`near`, the step at which they are further apart than seeds usually are).
    """
    known = {anomaly.type for result in other for anomaly in result.anomalies}
    first: dict[str, list[Anomaly]] = {}
    for result in group:
        own = {one.type: one for one in reversed(result.anomalies) if one.type not in known and _counts(one, near)}
        for kind, anomaly in own.items():
            first.setdefault(kind, []).append(anomaly)
    common = [found for found in first.values() if 2 * len(found) > len(group)]
    earliest = [min(found, key=lambda one: one.step) for found in common]
    return [_of_finding(anomaly, group[0].run, other[0].run, side) for anomaly in earliest]


def _counts(anomaly: Anomaly, near: int | None) -> bool:
    return anomaly.severity == "critical" or (near is not None and near <= anomaly.step)


def _of_finding(anomaly: Anomaly, run: Run, other: Run, side: str) -> Divergence:
    since = int(run.steps[min(max(anomaly.since, 0), len(run) - 1)])
    kind = BY_TYPE.get(anomaly.type)
    names = [name for group in kind.needs for name in group] if kind is not None else []
    metric = next((name for name in names if name in run.columns and name in other.columns), anomaly.type)
    found = [final_level(one, metric, anomaly.step) for one in (run, other)]
    levels = [nan if level is None else level for level in found]
    left, right = levels if side == "left" else reversed(levels)
    return Divergence(metric, min(since, anomaly.step), anomaly.step, left, right, inf, _FINDING, anomaly.type, side)


def largest_distance(left: Sequence[Run], right: Sequence[Run]) -> tuple[float, int]:
    """The largest distance over all metrics and steps, and the number of windows: what the null distribution is made from."""
    found = [aligned for metric in _metrics(left, right) if (aligned := align(metric, left, right)) is not None]
    most = [float(far.max()) for aligned in found if len(far := distances(aligned)[1])]
    return max(most, default=0.0), _windows(found)


def chance_of(distance: float, windows: int) -> float:
    """The chance that two seeds of one setting get this far apart, over this many windows of all metrics."""
    if distance <= 0:
        return 1.0
    if not isfinite(distance):
        return 0.0
    one = 1.0 - _student4((log(distance) - _LOG_MEAN) / _LOG_SPREAD)
    return float(1.0 - (1.0 - one) ** max(1.0, windows / _WINDOWS))


def _student4(t: float) -> float:
    """The distribution function of Student's t with four degrees of freedom."""
    part = 1.0 + t * t / 4.0
    return 0.5 + 0.375 * t / sqrt(part) * (1.0 - t * t / part / 12.0)


def distances(aligned: Aligned) -> tuple[Any, FloatArray, Any]:
    """For each window that can be judged: the number of its last row on the grid, the distance of the two groups in it, and the
    number of the first row over which that distance lasts: of the window for a sudden change, earlier for a drift.
    """
    both = np.isfinite(aligned.left).all(axis=0) & np.isfinite(aligned.right).all(axis=0)
    left, right, window = aligned.left[:, both], aligned.right[:, both], aligned.window
    if both.sum() < window + 5:
        return np.zeros(0, dtype=np.intp), np.zeros(0), np.zeros(0, dtype=np.intp)
    gap = rolling_mean(left.mean(axis=0) - right.mean(axis=0), window)
    count, place = len(gap), np.arange(len(gap))
    quiet = min(float((np.diff(run) ** 2).mean()) / 2 for run in (*left, *right))
    noise = _noise(left, window, count, quiet) + _noise(right, window, count, quiet)
    floor = _FLOOR**2 * 2 / (len(left) + len(right))
    far = np.abs(gap) / np.sqrt(noise + _earlier(gap, window, place) + floor)
    span = min(max(int(both.sum()) // _SPANS_PER_RUN, _MIN_SPAN_WINDOWS * window), count)
    drift = _drift(gap, noise * window / span, span, floor)
    started = np.where(drift > far, place - span + 1, place)
    first = max(_FIRST_ROWS - window + 1, 1)
    rows = np.flatnonzero(both)
    return rows[window - 1 :][first:], np.maximum(far, drift)[first:], rows[started[first:]]


def _drift(gap: FloatArray, noise: FloatArray, span: int, floor: float) -> FloatArray:
    """How far apart two groups are throughout the windows of a span that ends at each window; 0 where they change places.

    The noise of a span is that of its rows and what the differences of the spans so far deviate from a line.
    """
    spans = sliding_window_view(gap, span)
    smallest = np.maximum(np.maximum(spans.min(axis=1), -spans.max(axis=1)), 0.0)
    x = np.arange(span) - (span - 1) / 2
    off_line = np.maximum(spans.var(axis=1) - (spans @ x) ** 2 / (x @ x) / span, 0.0)
    so_far = np.cumsum(off_line) / np.arange(1, len(spans) + 1)
    return np.concatenate([np.zeros(span - 1), smallest / np.sqrt(noise[span - 1 :] + so_far + floor)])


def _noise(group: FloatArray, window: int, count: int, quiet: float) -> FloatArray:
    """The variance of a window's mean of a group, by the rows before each window or those in it, whichever are noisier.

    At first, before there are rows to go by, the quietest run gives the noise. Rows become noisier when a run changes, and a mean
    of noisy rows is off by more.
    """
    size, place = len(group), np.arange(count)
    squares = (np.diff(group, axis=1) ** 2).mean(axis=0) / 2
    sums = np.concatenate([[0.0], np.cumsum(squares)])
    before = (sums[place] + _PRIOR_ROWS * quiet) / (place + _PRIOR_ROWS)
    inside = (sums[place + window - 1] - sums[place]) / (window - 1)
    noise = _NOISE * np.maximum(before, inside) / window / size
    if size > 1:
        between = np.array([rolling_mean(run, window) for run in group]).var(axis=0, ddof=1) / size
        noise = noise + between
    return np.asarray(noise)


def _earlier(gap: FloatArray, window: int, place: Any) -> FloatArray:
    """The mean square of the differences before each window."""
    before = np.clip(place - window + 1, 0, len(gap))
    return np.asarray(np.concatenate([[0.0], np.cumsum(gap**2)])[before] / np.maximum(before, 1))


def _parting(aligned: Aligned, windows: int, certain: float) -> Divergence | None:
    """The first window in which two groups are too far apart, or the first row in which only one of them is finite."""
    rows, far, started = distances(aligned)
    crossed = next((n for n, one in enumerate(far.tolist()) if chance_of(one, windows) <= certain), None)
    broken = _not_finite(aligned)
    if broken is not None and (crossed is None or broken <= rows[crossed]):
        return _divergence_at(aligned, broken, broken, inf, 1.0)
    if crossed is None:
        return None
    last = int(rows[crossed])
    distance = float(far[crossed])
    return _divergence_at(aligned, int(started[crossed]), last, distance, 1.0 - chance_of(distance, windows))


def _rescheduled(aligned: Aligned) -> Divergence | None:
    """Where a setting that was the same in all runs ceases to be: a schedule has no noise, and an adapted setting is never the
    same."""
    both = np.concatenate([aligned.raw_left, aligned.raw_right])
    with np.errstate(invalid="ignore"):
        apart = np.ptp(both, axis=0) / np.maximum(np.abs(both).max(axis=0), 1e-300)
    first = int((apart > _SAME).argmax())
    return _divergence_at(aligned, first, first, inf, 1.0) if first >= _FIRST_ROWS and apart[first] > _SCHEDULE_APART else None


def _not_finite(aligned: Aligned) -> int | None:
    """The first row in which one group has a number that is not finite, and the other has not."""
    left, right = (~np.isfinite(one).all(axis=0) for one in (aligned.raw_left, aligned.raw_right))
    odd = left != right
    return int(odd.argmax()) if odd.any() else None


def _divergence_at(aligned: Aligned, first: int, last: int, distance: float, confidence: float) -> Divergence:
    levels = [float(one[:, first : last + 1].mean()) for one in (aligned.raw_left, aligned.raw_right)]
    steps = aligned.steps
    return Divergence(aligned.metric, int(steps[first]), int(steps[last]), levels[0], levels[1], distance, confidence)


def _metrics(left: Sequence[Run], right: Sequence[Run]) -> list[str]:
    runs = [*left, *right]
    shared = set.intersection(*(set(run.columns) for run in runs))
    return [name for name in COMPARED if name in shared and not other_units(name, runs)]


def _windows(found: Sequence[Aligned]) -> int:
    return sum(len(aligned.steps) // aligned.window for aligned in found)
