"""Chance alone is hardly ever critical; 1 000 streams of each kind are in benchmarks/detection/simulated.py --chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.judge.engine import Engine
from rldk.testing.chance import CHANCE, ROWS, chance_stream, share_of_criticals


def judge(events: Sequence[Event]) -> list[Anomaly]:
    engine = Engine()
    for event in events:
        engine.observe(event)
    return engine.anomalies


@pytest.mark.parametrize("kind", CHANCE)
def test_at_most_one_run_in_sixty_is_critical(kind: str) -> None:
    assert share_of_criticals(judge, kind, streams=60) <= 1 / 60


def test_what_the_kinds_are() -> None:
    white, memory, walk = (
        np.stack([CHANCE[kind](np.random.default_rng(seed), ROWS) for seed in range(200)]) for kind in list(CHANCE)[:3]
    )
    assert white.std() == pytest.approx(1.0, abs=0.05) and memory.std() == pytest.approx(1.0, abs=0.1)
    assert np.corrcoef(memory[:, :-1].ravel(), memory[:, 1:].ravel())[0, 1] == pytest.approx(0.9, abs=0.02)
    assert np.std(walk[:, -1] - walk[:, 0]) == pytest.approx(np.sqrt(2.0 + 0.01 * ROWS), rel=0.2)


def test_a_stream_is_fixed_by_its_seed_and_a_judge_that_always_raises_is_found_out() -> None:
    assert chance_stream("white noise", 3) == chance_stream("white noise", 3) != chance_stream("white noise", 4)
    always = [Anomaly("toy", "critical", "run", 0, 0, "", 0.0, 0.0, "", 0)]
    assert share_of_criticals(lambda events: always, "random walk", 3) == 1.0
