"""The standard panels show what a run has, leave out what it has not, and say it in words too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rldk.core.catalog import entry_of
from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.detectors.table import BY_TYPE
from rldk.plots import plot
from rldk.present.incidents import panels_showing
from rldk.present.plots.build import other_panels, panels_of
from rldk.present.plots.growing import GrowingRun
from rldk.present.plots.panel import Mark
from rldk.present.plots.source import DERIVED, RunSource
from rldk.present.plots.standard import STANDARD
from rldk.runs import Run

METRICS = {name for spec in STANDARD for curve in spec.curves for name in curve.metrics.split()}
BANDS = {
    name
    for spec in STANDARD
    for curve in spec.curves
    for rivals in curve.bands
    for band in rivals.split("|")
    for name in band.partition(":")[2].split()
}


def test_every_column_of_the_table_is_a_metric_or_is_computed() -> None:
    unknown = [name for name in METRICS | BANDS if name not in DERIVED and entry_of(name.removeprefix("eval_")) is None]
    assert unknown == []


def test_every_detector_names_panels_that_exist() -> None:
    keys = {spec.key for spec in STANDARD}
    assert [kind for kind, detector in BY_TYPE.items() if not detector.panels or not keys.issuperset(detector.panels)] == []


def test_a_run_gets_the_panels_it_has_metrics_for_and_no_other(run_of: Callable[..., Run]) -> None:
    run = run_of([Event(n, {"reward_mean": 0.1 * n, "kl_mean": 0.02, "kl_coef": 0.1}) for n in range(30)])
    panels = {panel.key: panel for panel in panels_of(RunSource(run), kl_target=0.05)}
    assert list(panels) == ["reward", "kl", "kl_coef"]
    assert [level.y for level in panels["kl"].levels] == [0.05] and panels["kl"].title == "KL against its target"
    assert panels_of(RunSource(run), only={"kl"})[0].title == "KL from the reference"  # no target, none spoken of
    assert panels["reward"].curves[0].y.tolist() == pytest.approx([0.1 * n for n in range(30)])


def test_a_target_alone_makes_no_panel_of_kl(run_of: Callable[..., Run]) -> None:
    run = run_of([Event(n, {"reward_mean": 0.1, "target_kl": 6.0}) for n in range(30)])
    assert [panel.key for panel in panels_of(RunSource(run))] == ["reward"]


def test_bands_are_around_their_curve_and_missing_values_are_no_points(run_of: Callable[..., Run]) -> None:
    events = [Event(n, {"reward_mean": 1.0, "reward_std": 0.25} if n % 3 else {"kl_mean": 0.1}) for n in range(30)]
    panels = {panel.key: panel for panel in panels_of(RunSource(run_of(events)))}
    curve = panels["reward"].curves[0]
    assert curve.x.tolist() == [n for n in range(30) if n % 3]
    assert set(curve.bands[0].low) == {0.75} and set(curve.bands[0].high) == {1.25}
    assert len(panels["kl"].curves[0].x) == 10


def test_percentiles_of_advantages_make_two_bands(run_of: Callable[..., Run]) -> None:
    row = {f"advantage_p{q}": q / 100 for q in (5, 25, 75, 95)} | {"advantage_median": 0.5, "advantage_mean": 0.4}
    panel = panels_of(RunSource(run_of([Event(n, dict(row)) for n in range(9)])), only={"advantages"})[0]
    assert panel.curves[0].label == "median"
    assert [(band.label, band.low[0], band.high[0]) for band in panel.curves[0].bands] == [
        ("5 to 95 %", 0.05, 0.95), ("25 to 75 %", 0.25, 0.75),
    ]  # fmt: skip


def test_a_ratio_to_nothing_is_a_gap_and_not_a_number(run_of: Callable[..., Run]) -> None:
    events = [
        Event(n, {"policy_grad_norm": 2.0, "value_grad_norm": 0.0 if n == 4 else 4.0, "reward_mean": 1.0}) for n in range(9)
    ]
    curve = panels_of(RunSource(run_of(events)), only={"gradient_ratio"})[0].curves[0]
    assert np.isnan(curve.y[4]) and set(np.delete(curve.y, 4)) == {0.5}


def test_values_over_many_powers_ask_for_a_logarithmic_axis(run_of: Callable[..., Run]) -> None:
    events = [Event(n, {"grad_norm": 1.0 if n < 90 else 1e5, "entropy_mean": 1.0}) for n in range(100)]
    panels = {panel.key: panel for panel in panels_of(RunSource(run_of(events)))}
    assert panels["gradients"].log and not panels["entropy"].log


def test_several_runs_lie_over_each_other_each_in_its_colour(broken: Run, run_of: Callable[..., Run]) -> None:
    other = run_of([Event(n, {"reward_mean": 0.1 * n}) for n in range(30)], "other")
    panel = panels_of([RunSource(broken), RunSource(other)], only={"reward"})[0]
    assert {(curve.run, curve.colour) for curve in panel.curves} == {("broken", 0), ("other", 1)}
    assert all(not curve.bands for curve in panel.curves)
    panel = panels_of([RunSource(broken), RunSource(broken)], only={"gradients"})[0]
    told_apart = {(curve.colour, curve.style) for curve in panel.curves}
    assert len(told_apart) == len(panel.curves) > 3  # by colour the run, by line the curve


def test_reward_functions_share_a_panel_and_unknown_metrics_get_their_own(run_of: Callable[..., Run]) -> None:
    events = [
        Event(n, {"reward": 0.1 * n, "rewards/format/mean": 0.5, "rewards/right/mean": 0.1 * n, "my_own": n % 5, "flat": 1.0})
        for n in range(30)
    ]
    source = RunSource(run_of(events))
    panel = next(panel for panel in panels_of(source) if panel.key == "reward_functions")
    assert [curve.label for curve in panel.curves] == ["format", "right"]
    assert [panel.key for panel in other_panels(source)] == ["my_own"]


def test_a_panel_in_words_tells_ends_extremes_target_and_marks(run_of: Callable[..., Run]) -> None:
    events = [Event(n, {"kl_mean": 0.5 + n, "target_kl": 6.0}) for n in range(20)]
    alt = panels_of(RunSource(run_of(events)), marks=[Mark(7, "1", "critical", "KL ran away")], only={"kl"})[0].alt
    assert "from 0.5 to 19.5, between 0.5 and 19.5" in alt
    assert "A line at 6: target." in alt and "Marked at step 7: KL ran away." in alt


def test_a_growing_run_gives_the_points_of_the_same_run_read_as_a_whole(broken: Run) -> None:
    growing, events = GrowingRun(broken.run_id), list(broken.events())
    for start in range(0, len(events), 37):
        growing.take(events[start : start + 37])
    whole = RunSource(broken)
    assert set(growing.names()) == set(whole.names()) and growing.run_id == "broken"
    for span in (None, (40.0, 200.0)):
        for one, other in zip(panels_of(growing, span=span), panels_of(whole, span=span), strict=True):
            assert one.key == other.key
            for curve, twin in zip(one.curves, other.curves, strict=True):
                assert np.array_equal(curve.x, twin.x) and np.array_equal(curve.y, twin.y, equal_nan=True)
                for band, same in zip(curve.bands, twin.bands, strict=True):
                    assert np.array_equal(band.low, same.low, equal_nan=True)


def test_by_the_hour_a_run_lies_where_its_clock_says_and_so_do_its_marks(run_of: Callable[..., Run]) -> None:
    times = [100.0 + 900 * n + (7200 if n >= 10 else 0) for n in range(20)]  # it rested for two hours
    events = [Event(10 * n, {"reward_mean": float(n)}, None if n == 5 else times[n]) for n in range(20)]
    growing = GrowingRun()
    growing.take(events)
    assert growing.is_timed
    for source in (RunSource(run_of(events), "hours"), Hours(growing)):
        panel = panels_of(source, only={"reward"}, marks=[Mark(100, "1", "critical"), Mark(55, "2", "warning")])[0]
        expected = [(time - 100) / 3600 for n, time in enumerate(times) if n != 5]
        assert panel.curves[0].x.tolist() == pytest.approx(expected) and panel.x_label == "hours"
        assert [mark.x for mark in panel.marks] == pytest.approx([4.5, 1.5])
        assert "by hours" in panel.alt
        _, (y,) = source.points(["reward_mean"], 100, (0.5, 1.6))
        assert y.tolist() == [2, 3, 4, 6]


class Hours:
    """A run that grows, along its hours."""

    axis, run_id = "hours", "r"

    def __init__(self, growing: GrowingRun) -> None:
        self.names, self._growing = growing.names, growing

    def places(self, steps: Any) -> Any:
        return self._growing.places(steps, self.axis)

    def points(self, names: Any, buckets: int, span: Any = None) -> Any:
        return self._growing.points(names, buckets, span, self.axis)


def test_a_clock_that_goes_back_and_a_log_without_one(run_of: Callable[..., Run]) -> None:
    growing = GrowingRun()
    growing.take([Event(n, {"reward_mean": float(n)}, 3600.0 * hour) for n, hour in enumerate([0, 2, 1, 3])])
    x, (y,) = growing.points(["reward_mean"], 100, (0.9, 2.1), "hours")
    assert x.tolist() == [2, 1] and y.tolist() == [1, 2]
    silent = run_of([Event(n, {"reward_mean": 1.0 * n}) for n in range(5)])
    assert RunSource(silent, "hours").axis == "step" and not GrowingRun().is_timed
    assert plot([silent], "reward", axis="hours").panels[0].x_label == "step"
    with pytest.raises(UsageError, match="Expected `axis` to be one of"):
        RunSource(silent, "days")


def test_what_a_row_of_a_growing_run_lacks_is_missing_and_not_zero() -> None:
    growing = GrowingRun("r")
    band = {"reward_min": 1.0, "reward_max": 3.0}
    growing.take([Event(n, {"reward_mean": 2.0, **(band if n % 2 else {})}) for n in range(10)])
    (curve,) = panels_of(growing, only={"reward"})[0].curves
    assert np.isnan(curve.bands[0].low[::2]).all() and set(curve.bands[0].low[1::2]) == {1.0}
    assert np.isnan(growing.column("reward_max")[::2]).all()


def test_a_long_growing_run_is_drawn_with_few_points_and_its_spike() -> None:
    growing = GrowingRun()
    rows = np.arange(200_000)
    values = np.sin(rows / 1000)
    values[77_777] = 50.0
    growing.extend(rows, {"kl_mean": (rows, values), "kl_coef": (rows[::7], values[::7])})
    x, (y,) = growing.points(["kl_mean"], 500)
    assert len(x) < 2500 and y.max() == 50.0 and x[y.argmax()] == 77_777
    x, (y,) = growing.points(["kl_mean"], 500, (77_700, 77_799))
    assert x.tolist() == list(range(77_700, 77_800))
    assert growing.points(["kl_coef"], 10**6)[0].tolist() == rows[::7].tolist()


def test_steps_that_go_back_are_still_found(run_of: Callable[..., Run]) -> None:
    growing = GrowingRun("r")
    growing.take([Event(step, {"reward_mean": float(n)}) for n, step in enumerate([0, 1, 2, 1, 2, 3])])
    x, (y,) = growing.points(["reward_mean"], 100, (1, 2))
    assert x.tolist() == [1, 2, 1, 2] and y.tolist() == [1, 2, 3, 4]


def test_a_wrong_name_of_a_metric_suggests_the_right_one(broken: Run) -> None:
    for wrong, right in {"kll": "kl_mean", "entropy_men": "entropy_mean", "rewrd": "reward_mean"}.items():
        with pytest.raises(UsageError, match=rf"Nothing to plot as '{wrong}'.*Did you mean .*{right}"):
            broken.plot(wrong)


def test_plot_of_a_run_marks_its_incidents_and_takes_names(broken: Run) -> None:
    picture = broken.plot()
    assert {mark.severity for mark in picture["reward"].marks} >= {"critical"}
    assert [panel.key for panel in broken.plot("kl", "entropy_mean")] == ["kl", "entropy_mean"]
    assert len(broken.plot("reward", span=(10, 20))["reward"].curves[0].x) <= 11
    assert [panel.curves[1].run for panel in plot([broken, broken], "entropy")] == ["broken"]
    with pytest.raises(UsageError, match=r"Nothing to plot as 'nonsense'.*It has .*advantage_mean"):
        broken.plot("nonsense")


def test_the_panels_of_an_incident_begin_with_its_first_mover(broken: Run) -> None:
    from rldk.judge.scan import judge_run

    judged = judge_run(broken)
    shown = panels_showing(anomaly.type for anomaly in judged.anomalies)
    assert shown[0] in {"entropy", "kl", "reward", "length", "gradients", "truncated"}
