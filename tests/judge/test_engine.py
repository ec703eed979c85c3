"""The engine: the same live and from a file, with a break or without, twice over; and no bigger after twenty thousand events."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.core.event import Event
from rldk.detectors.preference.preference_degenerate import PreferenceDegenerate
from rldk.detectors.reward.reward_hacking import RewardHacking
from rldk.detectors.run.user_limit import UserLimit
from rldk.detectors.table import BY_TYPE, DETECTORS
from rldk.ingest import read_runs
from rldk.judge.config import ScanConfig
from rldk.judge.engine import Engine
from rldk.judge.scan import judge_run
from rldk.log.writer import EventWriter
from rldk.testing.streams import FAULTS, faulty, healthy


def told(engine: Engine) -> str:
    """All that an engine has found, as bytes would compare."""
    return json.dumps([anomaly.to_dict() for anomaly in engine.anomalies])


def run(engine: Engine, events: Iterable[Event]) -> Engine:
    for event in events:
        engine.observe(event)
    return engine


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    """A sick run with gaps, values that are not finite, and rows that are missing."""
    name = draw(st.sampled_from(sorted(set(FAULTS) - {"step_regression"})))
    events = faulty(name, seed=draw(st.integers(0, 20)), steps=150, onset=draw(st.integers(5, 80)))
    rng = random.Random(draw(st.integers(0, 999)))
    gaps, odd = draw(st.sampled_from([0.0, 0.1, 0.5])), draw(st.sampled_from([0.0, 0.02]))
    for event in events:
        for metric in list(event.metrics)[1:]:
            if rng.random() < gaps:
                del event.metrics[metric]
            elif rng.random() < odd:
                event.metrics[metric] = rng.choice([float("nan"), float("inf"), float("-inf"), 1e308, 0.0])
    return [event for event in events if rng.random() > gaps / 5]


@settings(max_examples=20, deadline=None)
@given(events=streams())
def test_live_equals_offline(events: list[Event]) -> None:
    """What a monitor says while it writes the log is what a scan of that log says, to the last digit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run_events.jsonl")
        live = ScanConfig().judge()
        with EventWriter(path) as writer:
            for event in events:
                writer.write(event)
                live.take(event)
        (found,) = read_runs(path).runs
        assert told(judge_run(found).engine) == told(live.engine)
        assert len(found) == len(events)


@pytest.mark.parametrize("name", ["entropy_explosion", "nonfinite_metric", "kl_explosion"])
def test_saved_and_restored_at_every_position(name: str) -> None:
    events = faulty(name, seed=3, steps=100, onset=40)
    whole = run(Engine(), events)
    assert whole.anomalies
    engine = Engine()
    for event in events:
        engine.observe(event)
        saved = json.dumps(engine.state_dict())
        engine = Engine()
        engine.load_state_dict(json.loads(saved))
    assert told(engine) == told(whole)
    assert json.dumps(engine.state_dict()) == json.dumps(whole.state_dict())


@pytest.mark.parametrize("position", [0, 1, 4, 5, 20, 61, 63, 100, 219])
def test_restored_once_at_a_position(position: int) -> None:
    events = faulty("entropy_explosion", seed=1, steps=220, onset=60)
    first = run(Engine(), events[:position])
    second = Engine()
    second.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert told(run(second, events[position:])) == told(run(Engine(), events))


def test_what_a_restored_engine_does_leaves_the_saved_state_alone() -> None:
    events = faulty("policy_collapse", seed=1, steps=220, onset=60)
    state = run(Engine(), events[:100]).state_dict()
    before = json.dumps(state)
    engine = Engine()
    engine.load_state_dict(state)
    run(engine, events[100:])
    assert json.dumps(state) == before


def test_a_detector_that_the_state_does_not_know_starts_anew() -> None:
    first = run(Engine([BY_TYPE["policy_collapse"]()]), faulty("policy_collapse", seed=1, steps=220, onset=60))
    second = Engine([BY_TYPE["policy_collapse"](), BY_TYPE["entropy_collapse"]()])
    second.load_state_dict(first.state_dict())
    assert told(second) == told(first)


def test_more_of_a_step_is_not_another_step() -> None:
    """The second row is looked at by the same rules as the first: what they wait for is counted once."""
    found = []
    for rows in (1, 2):
        engine = Engine([RewardHacking()], reductions={"kl_mean": "token"})
        for step in range(80):
            engine.supplement(Event(step, {"reward_mean": 0.01 * step, "kl_mean": 0.05 if step < 40 else 8.0}))
            if rows == 2:
                engine.supplement(Event(step, {"eval_distinct_2": 0.9}))
        found.append([(anomaly.index, anomaly.clause) for anomaly in engine.anomalies])
    assert found[0] == found[1] != []


def test_twelve_thousand_events_take_no_more_memory_than_four_thousand() -> None:
    rng = random.Random(0)
    block = healthy("ppo", 1000, seed=1)
    for event in block:
        for name in rng.sample(sorted(event.metrics), 3):
            del event.metrics[name]  # ever another set of keys
    engine = Engine([kind() for kind in DETECTORS if kind.family in ("reward", "policy", "run", "length")])
    sizes = {}
    for number in range(12_000):
        event = block[number % 1000]
        event.step = number
        engine.observe(event)
        if number in (3_999, 11_999):
            state = engine.state_dict()
            del state["anomalies"]
            sizes[number] = len(json.dumps(state))
    assert engine.events == 12_000
    assert sizes[11_999] < 1.02 * sizes[3_999]
    assert len(engine._plans) <= 1024


def test_the_same_events_give_the_same_bytes_twice() -> None:
    for name in ("reward_hacking", "value_divergence"):
        first, second = (run(Engine(), faulty(name, seed=5, steps=300, onset=100)) for _ in range(2))
        assert told(first) == told(second) != "[]"
        assert json.dumps(first.state_dict()) == json.dumps(second.state_dict())


def test_the_same_bytes_whatever_the_seed_of_hashes(tmp_path: Path) -> None:
    path = tmp_path / "run_events.jsonl"
    with EventWriter(path) as writer:
        for event in faulty("policy_collapse", seed=2, steps=200, onset=80):
            writer.write(event)
    said = set()
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "rldk", "scan", "--json", str(path)]
        done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed}, timeout=120)
        assert done.returncode in (0, 1), done.stderr
        said.add(done.stdout)
    assert len(said) == 1


def rows(values: Iterable[float], name: str = "kl_mean", **more: float) -> list[Event]:
    return [Event(step, {name: value, **more}) for step, value in enumerate(values)]


def test_an_anomaly_is_open_until_it_is_cleared() -> None:
    engine = Engine([UserLimit("kl_mean", highest=1.0)])
    run(engine, rows([0.5, 2.0, 2.0]))
    assert [anomaly.index for anomaly in engine.standing] == [1]
    assert engine.standing[0].cleared_index is None
    engine.observe(Event(3, {"kl_mean": 0.5}))
    assert engine.standing == []
    assert engine.anomalies[0].cleared_index == 3


def test_two_limits_are_open_each_for_itself() -> None:
    engine = Engine([UserLimit("kl_mean", highest=1.0), UserLimit("loss", highest=1.0)])
    run(engine, [Event(0, {"kl_mean": 2.0, "loss": 2.0}), Event(1, {"kl_mean": 0.5, "loss": 2.0})])
    assert [(anomaly.message.split()[0], anomaly.cleared_index) for anomaly in engine.anomalies] == [
        ("kl_mean", 1),
        ("loss", None),
    ]


def test_observe_gives_what_this_event_raised() -> None:
    engine = Engine([UserLimit("kl_mean", highest=1.0)])
    assert [len(engine.observe(event)) for event in rows([0.5, 2.0, 3.0, 0.5, 2.0])] == [0, 1, 0, 0, 1]


def test_an_anomaly_has_the_knobs_of_its_moment() -> None:
    engine = Engine([UserLimit("loss", highest=1.0)])
    events = [
        Event(step, {"loss": loss, "lr": lr, "kl_coef": 0.1})
        for step, (loss, lr) in enumerate([(0.5, 1e-5), (2.0, 5e-5), (3.0, 9e-5)])
    ]
    (anomaly,) = run(engine, events).anomalies
    assert anomaly.knobs == {"lr": 5e-5, "kl_coef": 0.1}


def test_the_last_good_step_lies_before_the_median_could_move() -> None:
    engine = Engine([BY_TYPE["policy_collapse"]()])
    run(engine, [Event(10 * row, {"reward_mean": 0.8 + 0.01 * (row % 2) if row < 100 else 0.0}) for row in range(150)])
    first = engine.anomalies[0]
    assert first.last_good_step is not None and 900 <= first.last_good_step <= 10 * (first.since - 4)


def test_what_an_event_says_of_the_kl_is_heard() -> None:
    info = {"reductions": {"kl_mean": "sequence"}}
    engine = run(Engine(), [Event(0, {"kl_mean": 5.0}, model_info=info)])
    assert engine.reductions == {"kl_mean": "sequence"}


def test_a_metric_that_a_detector_needs_is_followed_even_if_no_other_looks_at_it() -> None:
    engine = run(Engine([PreferenceDegenerate()]), rows([0.9] * 6, "preference_accuracy", loss=0.1, grad_norm=1.0))
    assert {"preference_accuracy", "loss", "grad_norm"} <= set(engine.series)


def test_metrics_that_nobody_looks_at_are_not_kept_unless_asked_for() -> None:
    assert "my/own" not in run(Engine(), rows([1.0], "my/own")).series
    assert run(Engine(follow=["my/own"]), rows([1.0], "my/own")).series["my/own"].n == 1


def test_inactive_detectors_say_for_want_of_what() -> None:
    engine = run(Engine([BY_TYPE["policy_collapse"](), BY_TYPE["reward_saturation"]()]), rows([0.5] * 10, "reward_mean"))
    assert engine.inactive() == [("reward_saturation", ["reward_std"])]
    assert run(engine, rows([float("nan")], "reward_std")).inactive() == [], "it was logged, though never a number"


@pytest.mark.parametrize("events", [[], [Event(0)], [Event(0, {"kl_mean": float("nan")})], [Event(5), Event(-5)]])
def test_next_to_nothing(events: list[Event]) -> None:
    engine = run(Engine(), events)
    assert engine.events == len(events)
    restored = Engine()
    restored.load_state_dict(json.loads(json.dumps(engine.state_dict())))
    assert told(restored) == told(engine)
    assert [anomaly.type for anomaly in engine.anomalies] in ([], ["nonfinite_metric"], ["step_regression"])


def test_events_are_not_changed() -> None:
    events: list[Any] = faulty("policy_collapse", seed=1, steps=120, onset=40)
    before = repr(events)
    run(Engine(), events)
    assert repr(events) == before


@pytest.mark.parametrize("said", ["token", ["kl_mean", "token"], {"kl_mean": 3}, {"other": "token"}, 7])
def test_a_reduction_that_is_none_is_passed_over(said: object) -> None:
    engine = Engine()
    engine.observe(Event(0, {"kl_mean": 0.1}, model_info={"reductions": said}))
    assert engine.reductions == {}
