"""Groups of runs: the mean of those that go on, and a band between them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rldk
from rldk.comparison.mean_curve import mean_and_band
from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.runs.run import Runs


def test_the_mean_and_one_standard_deviation_of_each_part() -> None:
    steps = np.arange(10.0)
    found = mean_and_band([(steps, steps), (steps, steps + 2), (steps, steps + 4)], cells=10)
    assert found is not None
    x, mean, low, high = found
    assert len(x) == 10 and mean == pytest.approx(steps + 2)
    assert low == pytest.approx(steps) and high == pytest.approx(steps + 4)


def test_the_band_is_never_beyond_what_a_run_had() -> None:
    steps = np.arange(4.0)
    found = mean_and_band([(steps, np.full(4, level)) for level in (0.0, 0.0, 0.0, 90.0)], cells=4)
    assert found is not None and found[2].min() == 0.0 and found[3].max() == pytest.approx(67.5)


def test_the_mean_ends_with_half_of_the_runs_and_does_not_jump() -> None:
    long, short = np.arange(300.0), np.arange(10.0)
    found = mean_and_band([(short, short * 0), (short, short * 0), (long, long * 0 + 9)], cells=20)
    assert found is not None and found[0].max() <= 9 and set(found[1].tolist()) == {3.0}
    assert mean_and_band([(np.zeros(0), np.zeros(0))]) is None


def test_a_logarithmic_axis_has_equal_parts_of_it() -> None:
    x = np.arange(0.0, 1000.0)
    found = mean_and_band([(x, x), (x, x)], cells=12, x_log=True)
    assert found is not None
    ratios = found[0][2:] / found[0][1:-1]
    assert ratios == pytest.approx(np.full(len(ratios), ratios[0]), rel=0.01)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    for number in range(4):
        events = [Event(n, {"reward_mean": 1.0 * number + n, "kl_mean": 0.1}) for n in range(40)]
        settings = {"learning_rate": (1e-6, 1e-5)[number // 2], "seed": number % 2, "output_dir": str(number)}
        events[0].model_info["config"] = settings
        (folder / f"run{number}.jsonl").write_bytes(b"".join(event.to_json() + b"\n" for event in events))
    return folder


@pytest.mark.parametrize("by", ["config.lr", "learning_rate", "config"])
def test_results_are_drawn_as_groups(sweep: Path, by: str) -> None:
    (panel,) = rldk.scan(sweep).plot("reward", group_by=by)
    assert [curve.run.split("=")[1] for curve in panel.curves] == ["1e-06 (2 runs)", "1e-05 (2 runs)"]
    first, second = panel.curves
    assert second.y - first.y == pytest.approx(np.full(len(first.y), 2.0)) and first.y[0] == pytest.approx(0.5)
    assert first.bands[0].high - first.bands[0].low == pytest.approx(np.full(len(first.y), 1.0)), "within what the runs had"
    assert first.bands[0].label == "± 1 std between runs"


def test_runs_and_comparisons_are_drawn_as_groups_too(sweep: Path) -> None:
    runs = rldk.load(sweep)
    assert isinstance(runs, Runs) and len(runs.plot("reward", group_by="seed")["reward"].curves) == 2
    compared = rldk.compare(sweep, by="config.lr").plot("reward")
    assert [len(curve.bands) for curve in compared["reward"].curves] == [1, 1]
    assert "svg" in compared._repr_html_()


def test_a_setting_that_is_not_there_is_an_error_that_names_it(sweep: Path) -> None:
    with pytest.raises(UsageError, match=r"Cannot group by 'learning_rat'.*learning_rate"):
        rldk.scan(sweep).plot(group_by="config.learning_rat")
    with pytest.raises(UsageError, match=r"Nothing to plot as 'rewrd'.*reward_mean"):
        rldk.scan(sweep).plot("rewrd", group_by="config.lr")


def test_groups_take_the_options_of_other_plots(sweep: Path) -> None:
    runs = rldk.load(sweep)
    picture = runs.plot("reward", "kl", group_by="config.lr", span=(10, 20), kl_target=0.2, x_log=True)
    x = picture["reward"].curves[0].x
    assert 10 <= x[0] <= x[-1] <= 20 and picture["reward"].x_log
    assert [(level.y, level.label) for level in picture["kl"].levels] == [(0.2, "target")]
    with pytest.raises(TypeError, match="spam"):
        runs.plot("reward", group_by="config.lr", spam=1)


def test_the_panel_of_one_metric_takes_the_options_of_the_standard_ones(sweep: Path) -> None:
    (panel,) = rldk.load(sweep)[0].plot("reward_mean", span=(10, 20), x_log=True)
    assert (panel.x_log, panel.unit, list(panel.curves[0].x)) == (True, "reward", list(range(10, 21)))
