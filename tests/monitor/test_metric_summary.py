"""The summary statistics of a report, beside the one-pass statistics of each metric by itself."""

from __future__ import annotations

import random
from math import inf, isnan, nan

import pytest

from rldk.core.stats import RunningMoments
from rldk.monitor.outputs.json_files import MetricSummary


def both(rows: list[dict[str, float]]) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, float]]]:
    """What comes out for all metrics at once, and for each by itself."""
    ours, others = MetricSummary(), {}
    first: dict[str, float] = {}
    last: dict[str, float] = {}
    for row in rows:
        given = dict(row)
        ours.add(given)
        given.clear()  # a caller may use its dictionary again
        for name, value in row.items():
            others.setdefault(name, RunningMoments()).update(value)
            first.setdefault(name, value)
            last[name] = value
    alone = {
        name: {
            "count": one.count, "nonfinite": one.missing + one.nonfinite, "first": first[name], "last": last[name],
            "mean": one.mean, "std": one.std, "min": one.min, "max": one.max,
        }
        for name, one in sorted(others.items())
    }  # fmt: skip
    return ours.by_metric(), alone


@pytest.mark.parametrize("count", [1, 2, 31, 32, 33, 100])
def test_all_at_once_is_as_each_by_itself(count: int) -> None:
    chooser = random.Random(count)
    rows = []
    for step in range(count):
        row = {"big": 1e8 + chooser.gauss(0, 1), "same": 0.05, "drift": step * 1e5 + chooser.random(), "lost": nan}
        row["holes"] = chooser.choice((nan, inf, -inf, 1.0, 2.0, 3.5))
        if step % 3 == 0:
            row = {"rare": chooser.expovariate(1.0), **row}
        if step >= 40:
            del row["drift"]
        rows.append(row)
    ours, alone = both(rows)
    assert list(ours) == list(alone)
    for name, known in ours.items():
        assert known == pytest.approx(alone[name], rel=1e-7, nan_ok=True), name
    assert (ours["same"]["mean"], ours["same"]["std"]) == pytest.approx((0.05, 0.0 if count > 1 else nan), abs=0.0, nan_ok=True)
    assert ours["lost"]["count"] == 0 and ours["lost"]["nonfinite"] == count and isnan(ours["lost"]["min"])


def test_the_largest_numbers_have_a_mean_and_extremes() -> None:
    ours, alone = both([{"huge": 1.7e308 * (-1) ** step} for step in range(70)])
    assert ours["huge"]["mean"] == pytest.approx(0.0, abs=1e300) == alone["huge"]["mean"]
    assert (ours["huge"]["min"], ours["huge"]["max"], ours["huge"]["std"]) == (-1.7e308, 1.7e308, inf)
    ours, _ = both([{"huge": 1.7e308 * (1 if step < 32 else -1)} for step in range(64)])
    assert ours["huge"]["mean"] == pytest.approx(0.0, abs=1e300) and ours["huge"]["std"] == inf


def test_nothing_seen_is_nothing_said() -> None:
    assert MetricSummary().by_metric() == {}
