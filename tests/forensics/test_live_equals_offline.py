"""The same events give the same results, one by one or scanned, with a break or without; and odd ones break nothing."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rldk.core import jsonio
from rldk.core.event import Event
from rldk.forensics import ComprehensivePPOForensics, scan_ppo_events

ODD = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 0.0, -0.0, 1.0, -1.0]
NAMES = [
    "kl_mean", "kl_coef", "entropy_mean", "reward_mean", "reward_std", "policy_grad_norm", "value_grad_norm", "grad_norm",
    "advantage_mean", "advantage_std", "advantage_min", "advantage_max", "advantage_skewness", "advantage_kurtosis",
    "clip_frac", "value_loss", "loss", "lr", "rollout_length_mean", "length_reward_corr", "my_own_metric",
]  # fmt: skip
SCORES = ("kl_health_score", "schedule_health_score", "gradient_health_score", "training_stability")
SCORES += ("advantage_health_score", "advantage_quality_score", "length_bias_score")

values = st.floats(-10, 10) | st.floats(0, 1) | st.sampled_from(ODD)
rows = st.dictionaries(st.sampled_from(NAMES), values, max_size=12)
responses = st.lists(
    st.fixed_dictionaries({"length": st.integers(0, 50), "reward": st.floats(-2, 2) | st.just(math.nan)}), max_size=12
)


@st.composite
def event_rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Flat rows with gaps, odd values, steps that may go back, and responses in some."""
    found, step = [], 0
    for row in draw(st.lists(rows, min_size=1, max_size=40)):
        step += draw(st.sampled_from([1, 1, 1, 5, 0, -3]))
        found.append({"step": step, **row})
        if draw(st.booleans()):
            found[-1]["response_data"] = draw(responses)
    return found


def as_event(row: dict[str, Any]) -> Event:
    rest = {name: value for name, value in row.items() if name not in ("step", "response_data")}
    extra = {"response_data": row["response_data"]} if "response_data" in row else {}
    return Event(row["step"], rest, extra=extra)


def everything(forensics: ComprehensivePPOForensics) -> str:
    found = [forensics.get_comprehensive_analysis(), forensics.get_health_summary(), forensics.get_length_bias_analysis()]
    return json.dumps([*found, forensics.get_anomalies()], allow_nan=False, sort_keys=True)


@settings(max_examples=60, deadline=None)
@given(stream=event_rows(), target=st.sampled_from([None, 0.1, 0.5]))
@example(stream=[{"step": 1, "kl_mean": 2.0}], target=None)
@example(stream=[{"step": 1, "kl_mean": 2.0}], target=0.1)
def test_updates_one_by_one_equal_the_scan(stream: list[dict[str, Any]], target: float | None) -> None:
    live, offline, typed, nested = [ComprehensivePPOForensics(window_size=10, kl_target=target) for _ in range(4)]
    before = copy.deepcopy(stream)
    for row in stream:
        live.update(**row)
    scanned = offline.scan_ppo_events_comprehensive(iter(stream))
    assert everything(live) == everything(offline)
    assert scanned["comprehensive_analysis"] == live.get_comprehensive_analysis()
    typed.scan_ppo_events_comprehensive(as_event(row) for row in stream)
    assert everything(typed) == everything(live)
    shaped = [{"step": event.step, "metrics": event.metrics, **event.extra} for event in map(as_event, stream)]
    nested.scan_ppo_events_comprehensive(shaped)
    assert everything(nested) == everything(live)
    assert repr(stream) == repr(before)
    if target is None and not any("response_data" in row for row in stream):
        plain = scan_ppo_events(iter(stream))
        assert plain == {name: scanned[name] for name in plain}


@settings(max_examples=40, deadline=None)
@given(stream=event_rows(), data=st.data())
def test_a_break_in_the_middle_changes_nothing(stream: list[dict[str, Any]], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(stream)))
    whole, first, second = [ComprehensivePPOForensics(window_size=10) for _ in range(3)]
    expected = [repr(whole.update(**row)) for row in stream]
    for row in stream[:cut]:
        first.update(**row)
    saved = jsonio.loads(jsonio.dumps(first.state_dict()))
    second.load_state_dict(saved)
    assert everything(second) == everything(first)
    assert [repr(second.update(**row)) for row in stream[cut:]] == expected[cut:]
    assert everything(second) == everything(whole)


def test_what_the_first_values_of_a_key_decided_survives_a_break() -> None:
    whole, first, second = [ComprehensivePPOForensics() for _ in range(3)]
    for one in (whole, first):
        one.update(step=1, clip_frac=20.0)
    second.load_state_dict(jsonio.loads(jsonio.dumps(first.state_dict())))
    assert repr(second.update(step=2, clip_frac=1.0)) == repr(whole.update(step=2, clip_frac=1.0))
    assert second.engine.series["clip_frac"].last == 0.01


@settings(max_examples=60, deadline=None)
@given(stream=event_rows())
def test_scores_are_in_their_range_and_snapshots_stay_as_they_are(stream: list[dict[str, Any]]) -> None:
    forensics = ComprehensivePPOForensics(kl_target=0.5, window_size=10)
    kept = []
    for row in stream:
        metrics = forensics.update(**row)
        kept.append((metrics, repr(metrics)))
        scores = [metrics.overall_health_score, metrics.training_stability_score, metrics.convergence_quality_score]
        trackers = (
            metrics.kl_schedule_metrics, metrics.gradient_norms_metrics,
            metrics.advantage_statistics_metrics, metrics.length_bias_metrics,
        )  # fmt: skip
        scores += [getattr(tracker, name) for tracker in trackers for name in SCORES if hasattr(tracker, name)]
        scores += [part for parts in metrics.score_parts.values() for part in parts.values()]
        assert all(math.isnan(score) or 0.0 <= score <= 1.0 for score in scores), scores
        json.dumps(metrics.to_dict(), allow_nan=False)
    assert all(repr(metrics) == shown for metrics, shown in kept)


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize("count", [1, 2, 60])
def test_a_constant_of_any_size_breaks_nothing(value: float, count: int) -> None:
    forensics = ComprehensivePPOForensics(kl_target=0.1)
    for step in range(count):
        metrics = forensics.update(step, **dict.fromkeys(NAMES, value))
    json.dumps(metrics.to_dict(), allow_nan=False)
    assert forensics.get_health_summary()["status"] in ("no_data", "healthy", "degraded", "warning", "critical")


def test_a_reset_makes_it_as_new() -> None:
    forensics = ComprehensivePPOForensics(kl_target=0.1)
    fresh = everything(forensics)
    for step in range(40):
        forensics.update(step, kl=0.1 * step, reward_mean=math.nan, response_data=[{"length": step, "reward": step}] * 2)
    assert everything(forensics) != fresh
    forensics.reset()
    assert everything(forensics) == fresh


def test_memory_does_not_grow() -> None:
    forensics = ComprehensivePPOForensics(window_size=20)
    sizes = []
    for step in range(2000):
        row = dict.fromkeys(NAMES, 0.5 + 0.1 * math.sin(step))
        forensics.update(step, **row, response_data=[{"length": step % 17, "reward": step % 5}])
        if step in (999, 1999):
            sizes.append(len(json.dumps(forensics.trackers.state_dict())))
    assert sizes[1] < 1.03 * sizes[0]
