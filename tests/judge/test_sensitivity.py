"""One knob for all detectors: how long a condition must hold before it is raised."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import Any

import pytest

from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.detectors.table import BY_TYPE
from rldk.ingest import read_runs
from rldk.judge.config import ScanConfig
from rldk.judge.scan import judge_run
from rldk.monitor import Monitor

ROWS = 200
SUDDEN = 50


def raised(metric: str, before: float, after: float, **settings: Any) -> list[tuple[int, str]]:
    """Where and how grave a metric that changes at row 50 is raised; its median moves two rows later."""
    judge = ScanConfig.from_dict(settings).judge({"kl_mean": "token"})
    for row in range(ROWS):
        judge.take(Event(row, {metric: before if row < SUDDEN else after}))
    return [(anomaly.index, anomaly.severity) for anomaly in judge.anomalies]


@pytest.mark.parametrize(("sensitivity", "index"), [("high", 55), ("normal", 59), (None, 59), ("low", 67)])
def test_a_warning_waits_for_half_as_long_or_twice_as_long(sensitivity: str | None, index: int) -> None:
    """`clip_saturation.saturated` must hold for 8 rows."""
    assert raised("clip_frac", 0.1, 0.8, sensitivity=sensitivity) == [(index, "warning")]


@pytest.mark.parametrize(("sensitivity", "factor"), [("high", 0.5), ("normal", 1.0), ("low", 1.5)])
def test_a_critical_waits_for_half_as_long_or_half_as_long_again(sensitivity: str, factor: float) -> None:
    rows = ceil(factor * BY_TYPE["kl_explosion"].clauses["beyond_any"].persist)
    assert (SUDDEN + 2 + rows - 1, "critical") in raised("kl_mean", 0.1, 5.0, sensitivity=sensitivity)


@pytest.mark.parametrize("sensitivity", ["low", "normal", "high"])
def test_what_one_row_proves_needs_one_row(sensitivity: str) -> None:
    assert raised("loss", 0.5, float("nan"), sensitivity=sensitivity) == [(SUDDEN, "critical")]
    limited = raised("my/metric", 0.5, 2.0, sensitivity=sensitivity, limits={"my/metric": {"max": 1.0}})
    assert limited == [(SUDDEN, "warning")]


def test_the_users_own_persistence_is_as_told() -> None:
    detectors = {"clip_saturation": {"persist": 3}}
    assert raised("clip_frac", 0.1, 0.8, sensitivity="low", detectors=detectors) == [(54, "warning")]


def test_it_can_be_set_for_one_detector() -> None:
    detectors = {"clip_saturation": {"sensitivity": "high"}}
    assert raised("clip_frac", 0.1, 0.8, detectors=detectors) == [(55, "warning")]


@pytest.mark.parametrize("settings", [{"sensitivity": "huge"}, {"detectors": {"plateau": {"sensitivity": "huge"}}}])
def test_a_mistake_is_said(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"one of \['low', 'normal', 'high'\], got 'huge'"):
        ScanConfig.from_dict(settings)


def test_a_scan_of_a_live_run_uses_the_same(tmp_path: Path) -> None:
    with Monitor(tmp_path, "r", config={"sensitivity": "high"}) as monitor:
        for row in range(100):
            metrics = {"clip_frac": 0.1 if row < SUDDEN else 0.8, "reward_mean": 0.5 + 0.01 * (row % 3)}
            monitor.observe(Event(row, metrics))
    (run,) = read_runs([tmp_path / "r_events.jsonl"]).runs
    assert [anomaly.index for anomaly in judge_run(run).anomalies] == [55]
    assert [anomaly.index for anomaly in judge_run(run, ScanConfig(sensitivity="normal")).anomalies] == [59]
