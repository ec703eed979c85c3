"""`make calibrate` says of every clause that no run of the corpus tests what its numbers rest on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks/detection"))

import calibrate

from rldk.detectors.table import BY_TYPE

pytestmark = pytest.mark.full


def row(clause: str, **more: Any) -> dict[str, Any]:
    kind = BY_TYPE[clause.partition(".")[0]]
    measured = calibrate.measure(clause, {}, calibrate.Counter(), {}, more.pop("logged", set()))
    return {**measured, "basis": kind.clauses[clause.partition(".")[2]].basis, **more}


def test_a_clause_whose_metric_no_run_has_is_said_with_its_basis() -> None:
    (said,) = calibrate.without_evidence([row("importance_weights_degenerate.few_count", logged={"reward_mean", "kl_mean"})])
    assert said.startswith("importance_weights_degenerate.few_count: no run of the corpus has mismatch_ess or mismatch_chi2 or")
    assert "basis: verl's guide to rollout correction" in said


def test_a_clause_whose_defect_no_run_has_is_said_with_its_basis() -> None:
    (said,) = calibrate.without_evidence([row("vanished_metric.gone", logged={"reward_mean", "loss"})])
    assert "no sick run of the corpus has this defect; basis: definition: 20 rows" in said


def test_a_clause_that_a_run_fires_is_not_listed() -> None:
    assert calibrate.without_evidence([row("vanished_metric.gone", logged={"loss"}, failing=3)]) == []


def test_every_metric_of_a_group_is_named_only_where_none_is_logged() -> None:
    kind = BY_TYPE["throttled_update"]
    assert "sampling_ratio_mean" in calibrate.unlogged(kind, {"mismatch_kl"})
    assert calibrate.unlogged(kind, {"mismatch_kl", "sampling_ratio_mean"}) == []
