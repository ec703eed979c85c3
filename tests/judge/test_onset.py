"""Where a defect began: before the metric that shows it left its usual range, and not in the middle of the fall."""

from __future__ import annotations

import json
import random

import pytest

from rldk.core.event import Event
from rldk.judge.engine import Engine
from rldk.judge.incidents.incident import group_incidents
from rldk.judge.incidents.onset import Recent
from rldk.testing.streams import faulty


def first_critical(events: list[Event]) -> tuple[int, int | None]:
    engine = Engine()
    for event in events:
        engine.observe(event)
    incident = next(one for one in group_incidents(engine.anomalies, engine.events) if one.severity == "critical")
    return incident.step, incident.last_good_step


@pytest.mark.parametrize("fault", ["policy_collapse", "entropy_explosion", "kl_explosion", "length_collapse", "value_divergence"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_last_good_step_is_where_the_fault_begins(fault: str, seed: int) -> None:
    raised, good = first_critical(faulty(fault, seed=seed, steps=700, onset=400))
    assert good is not None and 350 <= good <= 412 < raised


def test_a_reward_that_was_dead_from_the_start_has_no_good_step() -> None:
    assert first_critical(faulty("dead_reward", seed=1, steps=300, onset=1))[1] is None


def test_a_slow_fall_is_followed_back_to_its_beginning() -> None:
    rng = random.Random(1)
    rewards = [1.0 - max(0, step - 200) / 60 + rng.gauss(0, 0.02) for step in range(400)]
    raised, good = first_critical([Event(step, {"reward_mean": reward}) for step, reward in enumerate(rewards)])
    assert good is not None and 190 <= good <= 206 < raised


def test_the_rows_are_saved_and_bounded() -> None:
    recent = Recent(Engine().detectors)
    for index in range(1000):
        recent.take(index, 10 * index, {"reward_mean": 0.5, "nobody/needs": 1.0})
    recent.take(999, 9990, {"kl_mean": 0.1})
    saved = json.loads(json.dumps(recent.state_dict()))
    assert len(saved) == 256 and saved[-1] == [999, 9990, {"reward_mean": 0.5, "kl_mean": 0.1}]
    again = Recent(Engine().detectors)
    again.load_state_dict(saved)
    assert again.state_dict() == recent.state_dict()
