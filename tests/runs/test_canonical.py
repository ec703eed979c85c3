"""Canonical terms: the same names for a row, for an event and for a table, and one rule for held-out data."""

from __future__ import annotations

from pathlib import Path

import pytest

from rldk.core.catalog import plan_for
from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.runs.build import build_runs
from rldk.runs.canonical import Canonicaliser, canonical_columns, prefix_held_out
from rldk.runs.table import TableBuilder

ROW = {"actor/kl_loss": 0.01, "critic/score/mean": 0.5, "perf/mfu/actor": 0.3, "actor/entropy": 1.5, "my_own": 2}


def test_a_row_and_a_table_get_the_same_names_and_values() -> None:
    event = Canonicaliser("verl").event({"step": 3, **ROW})
    builder = TableBuilder()
    builder.add({"step": 3, **ROW})
    table = builder.finish()
    columns, coverage = canonical_columns(table, plan_for(table.names, "verl"))
    assert event is not None
    assert {name: column.values.item() for name, column in columns.items()} == event.metrics
    assert event.metrics["kl_mean"] == 0.01 and event.metrics["my_own"] == 2.0 and coverage.unmapped == ["my_own"]


def test_an_event_that_is_in_canonical_terms_is_given_back_as_it_is() -> None:
    event = Event(1, {"kl_mean": 0.1, "reward_mean": 0.5, "mine": 1.0})
    assert Canonicaliser().event(event) is event


def test_keywords_may_be_missing_but_not_words() -> None:
    canonicaliser = Canonicaliser()
    assert canonicaliser.keywords({"kl": 0.1, "entropy": None, "learning_rate": "1e-5"}) == {"kl_mean": 0.1, "lr": 1e-5}
    with pytest.raises(UsageError, match=r"Expected `kl` to be a number, got 'high'\."):
        canonicaliser.keywords({"kl": "high"})


@pytest.mark.parametrize("phase", ["eval", "Validation", "test"])
def test_held_out_metrics_are_prefixed_alike_in_events_and_tables(phase: str) -> None:
    logged = {"loss": 0.5, "reward_mean": 0.1, "epoch": 2.0, "eval_kl_mean": 0.3, "mine": 1.0}
    event = prefix_held_out(Event(4, logged, model_info={"phase": phase}))
    assert set(event.metrics) == {"eval_loss", "eval_reward_mean", "epoch", "eval_kl_mean", "eval_mine"}
    builder = TableBuilder()
    builder.add_all([{"step": 1, "phase": "train", **logged}, {"step": 2, "phase": phase, **logged}])
    (run,) = build_runs(builder.finish(), path=Path("log.jsonl"), adapter="json")
    train, held_out = run.events()
    assert held_out.metrics == event.metrics
    assert train.metrics == logged


def test_an_event_of_training_is_not_prefixed() -> None:
    event = Event(4, {"loss": 0.5}, model_info={"phase": "warmup"})
    assert prefix_held_out(event) is event
