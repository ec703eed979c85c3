"""Every detector is made of named clauses, and says for each of them where its numbers come from."""

from __future__ import annotations

import re
from typing import ClassVar

import pytest

from rldk.core.event import Event
from rldk.detectors.base import NOTE, Clause, Detector, Finding, View
from rldk.detectors.run.user_limit import UserLimit
from rldk.detectors.table import BY_TYPE, DETECTORS
from rldk.judge.engine import Engine
from rldk.testing.streams import FAULTS, faulty

EVERY = [*DETECTORS, UserLimit]


def test_every_detector_has_clauses_with_a_basis() -> None:
    for kind in EVERY:
        assert kind.clauses, kind.type
        assert all(clause.says and clause.basis for clause in kind.clauses.values()), kind.type
        assert all(min(clause.persist, clause.min_rows) >= 1 for clause in kind.clauses.values()), kind.type


@pytest.mark.parametrize("fault", FAULTS)
def test_every_anomaly_names_a_clause_and_is_no_graver_than_it(fault: str) -> None:
    engine = Engine()
    for event in faulty(fault, seed=3, steps=400, onset=120):
        engine.observe(event)
    clauses = {kind.type: kind.clauses for kind in EVERY}
    for anomaly in engine.anomalies:
        clause = clauses[anomaly.type][anomaly.clause]
        assert anomaly.severity == clause.severity or (anomaly.severity, clause.severity) == ("warning", "critical"), anomaly


def test_a_limit_of_the_user_names_its_clause() -> None:
    (anomaly,) = Engine([UserLimit("kl_mean", highest=1.0, severity="critical")]).observe(Event(0, {"kl_mean": 2.0}))
    assert (anomaly.clause, anomaly.severity) == ("crossed", "critical")


NEWER = (
    "throttled_update", "importance_weights_degenerate", "stale_rollouts", "tools_abandoned", "broken_episodes",
    "expert_imbalance", "vanished_metric", "train_inference_mismatch", "sampler_mismatch", "uninformative_groups",
)  # fmt: skip
"""Detectors of metrics that no run of the corpus logs, or of defects that none has."""
SOURCE = re.compile(r"definition|\w#\d+|arXiv|guide|documentation|cookbook|prime-rl|log no KL|trl#|AReaL")


@pytest.mark.parametrize("name", NEWER)
def test_numbers_without_a_run_behind_them_rest_on_a_definition_or_a_source(name: str) -> None:
    for clause, said in BY_TYPE[name].clauses.items():
        assert SOURCE.search(said.basis), f"{name}.{clause}: {said.basis}"


class HighLoss(Detector):
    """A loss above 1, which is milder while the reward is above 0.

    What it catches: the test.
    """

    __slots__ = ()
    type: ClassVar[str] = "high_loss"
    family: ClassVar[str] = "run"
    needs: ClassVar = (("loss",),)
    advice: ClassVar[str] = "None."
    clauses: ClassVar = {
        "high": Clause("the loss is above 1", "warning", "definition", persist=1),
        "positive": Clause("the loss is above 0", NOTE, "definition", persist=1),
    }

    def find(self, view: View) -> list[Finding]:
        loss = view.event.metrics["loss"]
        if loss < 0.25:
            return [Finding("", loss, 0.0, "The loss is positive.", clause="positive")]
        severity = NOTE if view.event.metrics["reward_mean"] > 0 else ""
        return [Finding(severity, loss, 1.0, "The loss is high.", clause="high")] if loss > 1.0 else []


def test_what_becomes_milder_is_not_over() -> None:
    """An anomaly whose condition goes on as a note stands; it is over when the condition is."""
    engine = Engine([HighLoss()])
    for step in range(60):
        engine.observe(Event(step, {"loss": 2.0 if step < 40 else 0.5, "reward_mean": float(step > 10)}))
        if step == 39:
            assert [one.cleared_index for one in engine.anomalies] == [None]
    assert [one.cleared_index for one in engine.anomalies] == [44]
    assert [one.clause for one in engine.notes] == ["high"]


def test_another_condition_that_is_a_note_does_not_keep_an_anomaly() -> None:
    engine = Engine([HighLoss()])
    for step in range(60):
        engine.observe(Event(step, {"loss": 2.0 if step < 40 else 0.1, "reward_mean": 0.0}))
    assert [one.cleared_index for one in engine.anomalies] == [44]
    assert [one.clause for one in engine.notes] == ["positive"]
