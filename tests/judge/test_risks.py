"""Risks follow the same signals as the detectors, and never contradict them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rldk.core.event import Event
from rldk.judge.judge import Judge
from rldk.judge.scores.risks import collapse_risk, hacking_risk
from rldk.testing.streams import faulty, simulate


def risks(events: list[Event]) -> tuple[list[float], list[float], Judge]:
    judge = Judge()
    collapse, hacking = [], []
    for event in events:
        judge.take(event)
        collapse.append(collapse_risk(judge.engine.view, judge.standing))
        hacking.append(hacking_risk(judge.engine.view, judge.standing))
    return collapse, hacking, judge


def test_there_is_no_risk_without_evidence() -> None:
    collapse, hacking, _ = risks([Event(step, {"lr": 1e-6}) for step in range(30)])
    assert all(math.isnan(value) for value in (*collapse, *hacking))


@pytest.mark.parametrize("seed", range(3))
def test_a_healthy_run_has_low_risks(seed: int) -> None:
    collapse, hacking, judge = risks(simulate("ppo", 400, seed).events)
    assert not judge.anomalies
    assert np.nanmax(collapse) < 0.6 and np.nanmax(hacking) < 0.6
    assert np.nanmedian(collapse) < 0.3


@pytest.mark.parametrize(("fault", "which"), [("policy_collapse", 0), ("entropy_collapse", 0), ("reward_hacking", 1)])
def test_a_fault_drives_its_risk_up(fault: str, which: int) -> None:
    found = risks(faulty(fault, seed=0, onset=400))
    assert max(value for value in found[which] if value == value) >= 0.9
    before = [value for value in found[which][:400] if value == value]
    assert np.median(before) < 0.3


def test_a_risk_is_high_exactly_while_its_anomaly_stands() -> None:
    judge = Judge()
    for event in faulty("policy_collapse", seed=1):
        judge.take(event)
        severities = [one.severity for one in judge.standing if one.type == "policy_collapse"]
        risk = collapse_risk(judge.engine.view, judge.standing)
        if "critical" in severities:
            assert 0.9 <= risk <= 1.0
        elif not judge.standing:
            assert not risk >= 0.6
