"""The scan: its old result, any iterable, and rows of any framework."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import median
from typing import Any

import pytest

from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.forensics import ComprehensivePPOForensics, scan_ppo_events
from rldk.runs.canonical import Canonicaliser, read_events

Healthy = Callable[..., list[dict[str, float]]]


def test_nothing_to_scan() -> None:
    assert scan_ppo_events([]) == {"version": "1", "rules_fired": [], "earliest_step": None, "stats": {}}
    found = ComprehensivePPOForensics().scan_ppo_events_comprehensive(iter(()))
    assert found["enhanced_version"] == "2.0"
    assert found["comprehensive_analysis"]["total_steps"] == 0


def test_the_old_result_is_kept(healthy: Healthy, assert_strict: Callable[[Any], None]) -> None:
    rows = [{"step": 10 * step + 5, **row} for step, row in enumerate(healthy(120))]
    for number, row in enumerate(rows[60:]):
        row["entropy"] = 2.0 + 0.2 * number
    found = scan_ppo_events(iter(rows))
    assert set(found) == {"version", "rules_fired", "earliest_step", "stats"}
    assert found["earliest_step"] == 5
    assert found["stats"]["kl_median"] == median(row["kl"] for row in rows)
    assert found["stats"]["grad_ratio_median"] == median(row["policy_grad_norm"] / row["value_grad_norm"] for row in rows)
    assert found["stats"]["entropy_trend"] == "increasing"
    rules = {rule["rule"]: rule for rule in found["rules_fired"]}
    assert "entropy_explosion" in rules
    for rule in found["rules_fired"]:
        assert {"rule", "description", "step_range"} <= set(rule)
        assert 5 <= rule["step_range"][0] <= rule["step_range"][1] <= 1195
    assert rules["entropy_explosion"]["step_range"][1] == 1195
    assert_strict(found)


def test_a_rule_that_clears_ends_before_the_run_does() -> None:
    forensics = ComprehensivePPOForensics()
    rows = [{"step": step, "length_reward_corr": 0.8 if 20 <= step < 40 else 0.0} for step in range(80)]
    found = forensics.scan_ppo_events_comprehensive(rows)
    (rule,) = found["rules_fired"]
    (anomaly,) = forensics.get_anomalies()
    assert rule["rule"] == "length_bias"
    assert rule["step_range"] == [anomaly["since"], anomaly["cleared_index"] - 1]
    assert 20 <= rule["step_range"][0] < rule["step_range"][1] < 60


def test_the_comprehensive_scan_begins_anew_each_time(healthy: Healthy) -> None:
    rows = [{"step": step, **row} for step, row in enumerate(healthy(50))]
    forensics = ComprehensivePPOForensics()
    first = forensics.scan_ppo_events_comprehensive(rows)
    assert forensics.scan_ppo_events_comprehensive(iter(rows)) == first
    assert set(first) == {"version", "rules_fired", "earliest_step", "stats", "comprehensive_analysis", "enhanced_version"}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"step": 1, "kl": 0.1, "entropy": 2, "learning_rate": "1e-5"}, {"kl_mean": 0.1, "entropy_mean": 2.0, "lr": 1e-5}),
        (
            {
                "step": 1,
                "objective/kl": 5.0,
                "policy/approxkl_avg": 0.01,
                "val/ratio_var": 0.04,
                "objective/scores": 0.3,
                "episode": 64,
            },
            {"kl_mean": 5.0, "kl_update": 0.01, "ratio_std": 0.2, "reward_mean": 0.3, "episodes": 64.0},
        ),
        (
            {
                "training/global_step": 7,
                "actor/kl_loss": 0.01,
                "critic/score/mean": 0.5,
                "timing_s/adv": 1.0,
                "actor/grad_norm": 0.4,
            },
            {"kl_mean": 0.01, "reward_mean": 0.5, "policy_grad_norm": 0.4, "timing_s/adv": 1.0, "global_step": 7.0},
        ),
        ({"step": 1, "metrics": {"grad_norm_policy": 0.5, "text": "x", "mine": 3}}, {"policy_grad_norm": 0.5, "mine": 3.0}),
    ],
)
def test_rows_of_any_framework_are_read(row: dict[str, Any], expected: dict[str, float]) -> None:
    (event,) = read_events([row])
    assert event.metrics == pytest.approx(expected)


def test_the_kls_reduction_is_kept_where_the_framework_states_it() -> None:
    (event,) = read_events([{"step": 1, "objective/kl": 5.0, "policy/approxkl_avg": 0.01, "val/ratio": 1.0}])
    assert event.model_info["reductions"] == {"kl_mean": "sequence"}
    (plain,) = read_events([{"step": 1, "kl": 5.0}])
    assert "reductions" not in plain.model_info


def test_the_framework_is_told_by_the_first_rows_together() -> None:
    """MiniMind's `kl` is that of the update; a row that holds nothing else is read as the others are."""
    rows = [
        {"step": 1, "kl": 0.01},
        {"step": 2, "actor_loss": 0.1, "kl_ref": 0.2, "aux_loss": 0.0, "avg_response_len": 20, "actor_lr": 1e-6},
    ]
    first, second = read_events(rows)
    assert first.metrics == {"kl_update": 0.01}
    assert second.metrics["kl_mean"] == 0.2


def test_a_null_is_kept_as_one_and_a_summary_is_no_step() -> None:
    rows = [{"step": 1, "reward": None, "kl": 0.1}, {"step": 2, "train_runtime": 5.0, "train_loss": 0.1}]
    (event,) = read_events(rows)
    assert event.nulls == ("reward_mean",)


def test_rows_without_a_step_are_numbered_and_one_that_lacks_it_takes_the_last() -> None:
    assert [event.step for event in read_events([{"kl": 1.0}, {"kl": 2.0}])] == [1, 2]
    assert [event.step for event in read_events([{"step": 7, "kl": 1.0}, {"kl": 2.0}, {"step": "9", "kl": 1.0}])] == [7, 7, 9]


def test_an_event_with_canonical_names_is_passed_on_as_it_is() -> None:
    event = Event(1, {"kl_mean": 0.1, "mine": 2.0, "eval_reward_mean": 1.0}, nulls=("reward_mean",))
    assert Canonicaliser().event(event) is event
    other = Event(1, {"kl": 0.1}, nulls=("reward",), notes=["kept"])
    read = Canonicaliser().event(other)
    assert read is not None
    assert (read.metrics, read.nulls, read.notes) == ({"kl_mean": 0.1}, ("reward_mean",), ["kept"])
    assert other.metrics == {"kl": 0.1}


def test_what_is_no_event_is_refused() -> None:
    with pytest.raises(UsageError, match="Expected events to be Event objects or mappings, got 5"):
        scan_ppo_events([5])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("values", "direction"),
    [
        ([1.0] * 20, "stable"),
        ([float(step) for step in range(20)], "increasing"),
        ([-0.1 * step for step in range(20)], "decreasing"),
        ([(-1.0) ** step for step in range(20)], "stable"),
        ([1e308, -1e308] * 10, "stable"),
    ],
)
def test_the_direction_of_a_series(values: list[float], direction: str) -> None:
    rows = [{"step": step, "entropy": value} for step, value in enumerate([*values, math.nan, math.inf])]
    assert scan_ppo_events(rows)["stats"]["entropy_trend"] == direction
