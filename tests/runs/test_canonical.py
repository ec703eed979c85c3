"""Canonical terms: the same names for a row, for an event and for a table, and one rule for held-out data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rldk.core.catalog import plan_for
from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.ingest import read_runs
from rldk.monitor.monitor import Monitor
from rldk.runs.build import build_runs
from rldk.runs.canonical import Canonicaliser, canonical_columns, prefix_held_out, read_events
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


def by_both_ways(rows: list[dict[str, Any]]) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
    """The metrics of rows as they are read one at a time, and as a table."""
    builder = TableBuilder()
    builder.add_all(rows)
    (run,) = build_runs(builder.finish(), path=Path("log.jsonl"), adapter="json")
    one_by_one = list(read_events(rows))
    assert [event.step for event in one_by_one] == run.steps.tolist()
    return [event.metrics for event in one_by_one], [event.metrics for event in run.events()]


@pytest.mark.parametrize(
    ("key", "logged", "name", "read"),
    [
        ("truncated_frac", [20.0, 0.5, 0.0, 35.0], "truncated_frac", [0.2, 0.005, 0.0, 0.35]),
        ("truncated_frac", [0.2, 1.0, 1.1, 0.0], "truncated_frac", [0.2, 1.0, 1.1, 0.0]),
        ("truncated_frac", [120.0, 3.0, 7.0, 90.0], "truncated_frac", [120.0, 3.0, 7.0, 90.0]),
        ("truncated_frac", [-1.0, 30.0, 40.0, 50.0], "truncated_frac", [-1.0, 30.0, 40.0, 50.0]),
        ("explained_variance", [0.2, 2.0, 3.0, 4.0], "explained_variance", [0.2, 2.0, 3.0, 4.0]),
        ("entropy_loss", [-1.0, -0.2, 0.6, 1.2], "entropy_mean", [1.0, 0.2, -0.6, -1.2]),
        ("entropy_loss", [0.0, 1.0, 0.5, -0.5], "entropy_mean", [0.0, 1.0, 0.5, -0.5]),
        ("kl_penalty", [0.001, 0.002, -0.001, 0.1], "kl_mean", [0.001, 0.002, -0.001, 0.1]),
        ("train/kl_penalty", [-2.0, 0.0, 0.5, -4.0], "kl_penalty_reward", [-2.0, 0.0, 0.5, -4.0]),
        ("KL penalty", [-2.0, -2.5, -3.0, -4.0], "kl_penalty_reward", [-2.0, -2.5, -3.0, -4.0]),
    ],
)
def test_what_the_values_decide_is_the_same_live_and_in_a_table(
    key: str, logged: list[float], name: str, read: list[float]
) -> None:
    rows = [{"step": step, "reward": 1.0, key: value} for step, value in enumerate(logged, 1)]
    live, table = by_both_ways(rows)
    assert live == table == [{"reward_mean": 1.0, name: pytest.approx(value)} for value in read]


def test_the_first_value_decides_live_whether_a_key_is_in_percent() -> None:
    """Were it decided later, a run would fall to a hundredth of what it was."""
    rows = [{"step": step, "reward": 1.0, "truncated": value} for step, value in enumerate((0.0, 0.5, 20.0, 1.0))]
    live, table = by_both_ways(rows)
    assert [event["truncated_frac"] for event in live] == [0.0, 0.5, 20.0, 1.0]
    assert [event["truncated_frac"] for event in table] == [0.0, 0.005, 0.2, 0.01]
    live, table = by_both_ways(rows[2:])
    assert [event["truncated_frac"] for event in live] == [event["truncated_frac"] for event in table] == [0.2, 0.01]


def test_what_a_live_run_wrote_is_read_as_it_was(tmp_path: Path) -> None:
    values = [0.5, 20.0, 45.0]
    with Monitor(tmp_path, run_id="r") as monitor:
        for step, value in enumerate(values):
            monitor.observe(Event(step, {"reward_mean": 0.1 * step, "accuracy": value}))
    (run,) = read_runs(tmp_path / "r_events.jsonl").runs
    assert run.columns["accuracy"].values.tolist() == values


@pytest.mark.parametrize(
    "steps",
    [
        [{"step": 0, "iteration": n} for n in range(40)],
        [{"step": 0} for n in range(40)],
        [{"global_step/max_steps": f"{10 * n}/547"} for n in range(40)],
        [{"_step": n, **({"iteration": 5 * n} if n % 4 == 0 else {})} for n in range(40)],
    ],
)
def test_the_step_is_found_alike_in_rows_and_in_a_table(steps: list[dict[str, Any]]) -> None:
    live, table = by_both_ways([{**step, "reward": 1.0} for step in steps])
    assert live == table


@pytest.mark.parametrize(
    "steps",
    [[n // 60 for n in range(240)], [None] * 60 + [10 * n for n in range(60, 100)], [0] * 60 + [5 * n for n in range(60, 100)]],
    ids=["a key per row", "none at first", "a warm-up"],
)
def test_a_step_that_moves_after_the_first_rows_is_kept(steps: list[int | None]) -> None:
    events = read_events({"step": step, "reward": 0.1 * n} for n, step in enumerate(steps))
    assert [event.step for event in events][-3:] == steps[-3:]


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
    logged = {"loss": 0.5, "reward_mean": 0.1, "epoch": 2.0, "eval_kl_mean": 0.3, "mine": 1.0, "temperature": 0.0}
    event = prefix_held_out(Event(4, logged, model_info={"phase": phase}))
    assert set(event.metrics) == {"eval_loss", "eval_reward_mean", "epoch", "eval_kl_mean", "eval_mine", "eval_temperature"}
    builder = TableBuilder()
    builder.add_all([{"step": 1, "phase": "train", **logged}, {"step": 2, "phase": phase, **logged}])
    (run,) = build_runs(builder.finish(), path=Path("log.jsonl"), adapter="json")
    train, held_out = run.events()
    assert held_out.metrics == event.metrics
    assert train.metrics == logged


def test_an_event_of_training_is_not_prefixed() -> None:
    event = Event(4, {"loss": 0.5}, model_info={"phase": "warmup"})
    assert prefix_held_out(event) is event
