"""From a raw table to runs: steps, rows left out, rows merged, names, labels, units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rldk.runs.build import build_runs
from rldk.runs.run import Run
from rldk.runs.table import TableBuilder


def build(
    rows: list[dict[str, Any]], *, path: str = "folder/file.jsonl", field_map: Mapping[str, str] | None = None, **more: Any
) -> list[Run]:
    words = [key for key, target in (field_map or {}).items() if target in ("step", "wall_time", "run_id", "phase")]
    builder = TableBuilder(lift="metrics", words=words)
    builder.add_all(rows)
    return build_runs(builder.finish(), path=Path(path), adapter="test", field_map=field_map, **more)


def one(rows: list[dict[str, Any]], **more: Any) -> Run:
    runs = build(rows, **more)
    assert len(runs) == 1
    return runs[0]


def values(run: Run, name: str) -> list[float | None]:
    return [None if math.isnan(value) else value for value in run.columns[name].values.tolist()]


# Steps


def test_the_step_is_the_first_key_that_half_of_the_rows_have() -> None:
    rows = [{"_step": 7 * n, "train/global_step": n, "loss": 1.0} for n in range(4)]
    assert one(rows).steps.tolist() == [0, 1, 2, 3]
    sparse = [{"_step": 7 * n, "loss": 1.0, **({"train/global_step": n} if n == 2 else {})} for n in range(5)]
    assert one(sparse).steps.tolist() == [0, 7, 14, 21, 28]


def test_a_row_without_a_step_has_that_of_the_row_before() -> None:
    run = one([{"step": 1, "loss": 1.0}, {"reward": 0.5}, {"step": 2, "loss": 2.0}])
    assert run.steps.tolist() == [1, 2] and values(run, "reward_mean") == [0.5, None]
    assert "1 row without a step: the previous row's step is used" in run.notes


def test_the_first_rows_without_a_step_take_the_first_there_is() -> None:
    assert one([{"reward": 0.5}, {"step": 4, "loss": 1.0}, {"step": 5, "loss": 1.0}]).steps.tolist() == [4, 5]


@pytest.mark.parametrize("step", [0.5, 1e30, math.nan])
def test_steps_that_are_none_are_not_said_to_be_missing(step: float) -> None:
    run = one([{"step": step + n, "loss": 1.0} for n in range(3)])
    assert run.steps.tolist() == [1, 2, 3]
    assert "no logged step is a whole number; rows are numbered from 1" in run.notes


def test_rows_without_any_step_are_numbered() -> None:
    run = one([{"loss": 1.0}, {"loss": 2.0}, {"nothing": "x"}, {"loss": 3.0}])
    assert run.steps.tolist() == [1, 2, 3] and "no step is logged; rows are numbered from 1" in run.notes


def test_a_step_that_stands_still_is_none() -> None:
    run = one([{"step": 0, "loss": float(n)} for n in range(20)])
    assert run.steps.tolist() == list(range(1, 21)) and "the step never changes; rows are numbered from 1" in run.notes
    assert one([{"step": 0, "epoch": n, "iteration": n, "loss": 1.0} for n in range(20)]).steps.tolist() == list(range(20))


@pytest.mark.parametrize("key", ["global_step/max_steps", "step"])
def test_a_step_of_a_total(key: str) -> None:
    assert one([{key: f"{n}/547", "loss": 1.0} for n in (10, 20, 30)]).steps.tolist() == [10, 20, 30]


def of_epochs(epochs: list[float], steps: list[int]) -> list[dict[str, Any]]:
    return [{"epoch": epoch, "step": step, "loss": 1.0} for epoch in epochs for step in steps]


@pytest.mark.parametrize(("first", "epochs"), [(0, [0.0, 1.0, 2.0]), (1, [1.0, 2.0, 3.0]), (1, [0.0, 1.0, 2.0])])
def test_steps_that_start_over_with_each_epoch_are_counted_on(first: int, epochs: list[float]) -> None:
    run = one(of_epochs(epochs, list(range(first, first + 20))))
    assert run.steps.tolist() == list(range(first, first + 60))
    assert "the step starts over with each epoch; steps are counted on" in run.notes


def test_a_run_that_begins_again_in_its_first_epoch_is_another_run() -> None:
    rows = of_epochs([1.0, 2.0], [10, 20, 30])
    assert [run.steps.tolist() for run in build(rows + rows)] == [[10, 20, 30, 40, 50, 60]] * 2


def test_a_run_that_is_resumed_in_a_later_epoch_is_one_run() -> None:
    rows = of_epochs([0.0, 1.0], [1, 2, 3])
    assert one(rows[:5] + rows[3:]).steps.tolist() == [1, 2, 3, 4, 5, 6]


def test_a_row_without_a_step_is_not_counted_on() -> None:
    rows = of_epochs([0.0, 1.0], [1, 2, 3])
    rows.insert(3, {"epoch": 1.0, "eval_reward": 0.5})
    assert one(rows).steps.tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("epochs", [[0.5, 0.5, 1.0, 1.0], [0.0, 0.0, 2.0, 2.0], [1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0]])
def test_steps_that_start_over_for_another_reason_are_another_run(epochs: list[float]) -> None:
    rows = [{"epoch": epoch, "step": step, "loss": 1.0} for epoch, step in zip(epochs, (1, 2, 1, 2), strict=True)]
    assert [run.steps.tolist() for run in build(rows)] == [[1, 2], [1, 2]]


def test_steps_that_are_no_whole_numbers_do_not_count() -> None:
    run = one([{"step": 1, "loss": 1.0}, {"step": 1.5, "reward": 2.0}, {"step": math.inf, "kl": 3.0}, {"step": 1e300, "lr": 1.0}])
    assert run.steps.tolist() == [1]
    assert [values(run, name) for name in ("loss", "reward_mean", "kl_mean", "lr")] == [[1.0], [2.0], [3.0], [1.0]]


# Rows that are no steps


def test_summary_rows_are_left_out_and_said() -> None:
    rows: list[dict[str, Any]] = [
        {"step": 1, "loss": 1.0, "learning_rate": 1e-5},
        {"step": 2, "loss": 0.5, "learning_rate": 1e-5},
    ]
    rows.append({"step": 2, "train_runtime": 9.0, "train_loss": 0.75, "total_flos": 1e9, "epoch": 1.0})
    run = one(rows)
    assert values(run, "loss") == [1.0, 0.5] and "1 summary row of the whole run left out" in run.notes


def test_a_row_that_measures_a_step_is_one_whatever_else_it_holds() -> None:
    run = one([{"step": 1, "reward": 0.5}, {"step": 2, "reward": 0.75, "train_runtime": 9.0, "total_flos": 1.0}])
    assert values(run, "reward_mean") == [0.5, 0.75] and run.notes == []


def test_rows_without_a_metric_are_left_out_and_said() -> None:
    run = one([{"step": 1, "loss": 1.0}, {"step": 2, "message": "saved"}, {"step": 3, "epoch": 1.0}, {"step": 4, "loss": 2.0}])
    assert run.steps.tolist() == [1, 4] and "2 rows without a metric left out" in run.notes


def test_a_table_without_metrics_has_no_runs() -> None:
    assert build([{"step": 1, "message": "hello"}]) == [] and build([]) == []


# Rows of one step


def test_rows_of_a_step_become_one_and_the_last_value_wins() -> None:
    rows = [
        {"step": 1, "loss": 1.0, "kl": 0.1, "wall_time": 5.0}, {"step": 1, "loss": 2.0, "reward": 0.5},
        {"step": 1, "lr": 1e-5, "wall_time": 6.0},
        {"step": 2, "loss": 3.0, "wall_time": 7.0},
    ]  # fmt: skip
    run = one(rows)
    assert run.steps.tolist() == [1, 2] and run.wall_time.tolist() == [6.0, 7.0]
    assert (
        values(run, "loss") == [2.0, 3.0] and values(run, "kl_mean") == [0.1, None] and values(run, "reward_mean") == [0.5, None]
    )
    assert run.notes == ["1 step logged more than once, with different values of loss: the last value is used"]


def test_rows_of_a_step_that_complement_each_other_are_normal_and_not_noted() -> None:
    rows: list[dict[str, Any]] = []
    for step in range(1, 21):
        rows.append({"step": step, "loss": 1 / step, "kl": math.nan, "epoch": step / 20})
        if step % 5 == 0:
            rows.append({"step": step, "eval_loss": 2 / step, "kl": math.nan, "epoch": step / 20 + 0.01})
    run = one(rows)
    assert len(run) == 20 and values(run, "eval_loss")[4] == 0.4 and run.notes == []


def test_a_nan_that_was_logged_last_is_not_hidden() -> None:
    run = one([{"step": 1, "loss": 1.0}, {"step": 1, "loss": math.nan, "lr": 1.0}])
    assert values(run, "loss") == [None] and run.columns["loss"].state.tolist() == [1]
    assert math.isnan(next(run.events()).metrics["loss"])


def test_held_out_metrics_stand_beside_those_of_training() -> None:
    run = one([{"step": 1, "loss": 1.0}, {"step": 1, "eval_loss": 2.0}, {"step": 2, "loss": 0.5}, {"step": 3, "eval_loss": 1.5}])
    assert values(run, "loss") == [1.0, 0.5, None] and values(run, "eval_loss") == [2.0, None, 1.5]
    assert run.phases().tolist() == ["train", "train", "eval"]


@pytest.mark.parametrize("phase", ["eval", "Validation", "test"])
def test_rows_of_a_held_out_phase_do_not_overwrite_the_training(phase: str) -> None:
    rows: list[dict[str, Any]] = []
    for step in (1, 2, 3):
        rows.append({"step": step, "metrics": {"reward_mean": 1.0, "mine": 5.0}, "model_info": {"phase": "train"}})
        rows.append({"step": step, "metrics": {"reward_mean": 9.0, "mine": 6.0}, "model_info": {"phase": phase}})
    run = one(rows)
    assert values(run, "reward_mean") == [1.0] * 3 and values(run, "eval_reward_mean") == [9.0] * 3
    assert values(run, "mine") == [5.0] * 3 and values(run, "eval_mine") == [6.0] * 3
    assert run.phases().tolist() == ["train"] * 3
    assert run.coverage.metrics == {"reward_mean": "reward_mean", "eval_reward_mean": "reward_mean"}
    assert run.coverage.unmapped == ["mine", "eval_mine"]


def test_a_phase_of_ones_own_is_kept_as_it_is() -> None:
    run = one([{"step": 1, "loss": 1.0, "phase": "warmup"}, {"step": 2, "loss": 2.0, "phase": "main"}, {"step": 3, "loss": 3.0}])
    assert run.phases().tolist() == ["warmup", "main", "train"] and values(run, "loss") == [1.0, 2.0, 3.0]


# Runs and their names


def test_runs_are_told_apart_by_their_ids_in_the_order_they_begin() -> None:
    rows = [{"step": n // 2, "loss": float(n), "run_id": "ba"[n % 2]} for n in range(6)]
    runs = build(rows)
    assert [run.run_id for run in runs] == ["b", "a"]
    assert [values(run, "loss") for run in runs] == [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]


@pytest.mark.parametrize(("ids", "names"), [([3, 4], ["3", "4"]), ([0.5, "x"], ["0.5", "x"]), (["1", 1], ["1"]),
([True, None], ["1", "file"])])
def test_a_run_id_may_be_a_number_or_missing(ids: list[Any], names: list[str]) -> None:
    rows = [{"step": n // 2, "loss": float(n), "run_id": ids[n % 2]} for n in range(6)]
    assert [run.run_id for run in build(rows)] == names


def test_ids_that_name_rows_and_not_runs_are_left_out() -> None:
    run = one([{"step": n, "loss": 1.0, "run_id": f"row-{n}"} for n in range(1500)])
    assert len(run) == 1500 and "1500 run ids in 1500 rows" in run.notes[0]


def test_restarts_are_numbered() -> None:
    assert [run.run_id for run in build([{"step": n % 3, "loss": 1.0} for n in range(6)])] == ["file#1", "file#2"]


@pytest.mark.parametrize(
    ("path", "name"),
    [("a/run7.jsonl", "run7"), ("a/run7.jsonl.gz", "run7"), ("a/run7/metrics.jsonl", "run7"),
    ("a/run7/trainer_state.json", "run7"),
     ("a/rho0.30_seed42.log", "rho0.30_seed42"), ("a/b/events.out.tfevents.1.host.2.0", "b"), ("a/.jsonl", ".jsonl")],
)  # fmt: skip
def test_a_run_without_a_name_has_that_of_its_file_or_folder(path: str, name: str) -> None:
    assert one([{"step": 1, "loss": 1.0}], path=path).run_id == name


# What else a row says


def test_labels_and_times() -> None:
    info = {"run_id": "r", "git_sha": "123456", "phase": "train"}
    rows = [
        {
            "step": n,
            "wall_time": 10.0 + n,
            "metrics": {"loss": 1.0},
            "rng": {"seed": 42},
            "model_info": info,
            "notes": ["a", "b"] if n else [],
        }
        for n in range(2)
    ]
    run = one(rows)
    assert run.wall_time.tolist() == [10.0, 11.0]
    frame = run.frame()
    assert list(frame) == ["step", "wall_time", "loss", "run_id", "phase", "git_sha", "seed", "notes"]
    assert frame["git_sha"].tolist() == ["123456"] * 2 and frame["seed"].tolist() == [42.0] * 2
    assert frame["notes"].iloc[1] == "a; b" and frame["notes"].isna().tolist() == [True, False]


@pytest.mark.parametrize(
    ("written", "seconds"), [(5.0, 5.0), ("5", 5.0), ("2024-01-01T00:00:00Z", 1704067200.0), ("1:02:03", 3723.0),
    ("5m 18s", 318.0), ("soon", None)]
)
def test_times_in_any_writing(written: Any, seconds: float | None) -> None:
    run = one([{"step": 1, "loss": 1.0, "timestamp": written}])
    assert run.wall_time.tolist() == [seconds] if seconds is not None else math.isnan(run.wall_time[0])


def test_an_event_has_what_its_row_said() -> None:
    info = {"run_id": "r", "git_sha": "abc", "phase": "train"}
    row = {
        "step": 3,
        "wall_time": 1.5,
        "metrics": {"kl_mean": 0.5, "mine": 2.0, "reward": None},
        "rng": {"seed": 7},
        "model_info": info,
    }
    row |= {"data_slice": {"tokens_in": 10, "tokens_out": 20}, "notes": ["odd"]}
    event = next(one([row]).events())
    assert (event.step, event.wall_time, event.metrics, event.nulls) == (3, 1.5, {"kl_mean": 0.5, "mine": 2.0}, ("reward_mean",))
    assert event.model_info == {**info, "reductions": {"kl_mean": "unstated"}}
    assert (event.rng, event.data_slice, event.notes) == ({"seed": 7}, {"tokens_in": 10, "tokens_out": 20}, ["odd"])


# Units and coverage


def test_over_what_a_kl_was_reduced_is_kept_for_each_run() -> None:
    rows: list[dict[str, Any]] = []
    for run_id, per in (("ppo", "sequence"), ("grpo", "token"), ("odd", "fortnight")):
        info = {"run_id": run_id, "reductions": {"kl_mean": per}}
        rows += [{"step": n, "metrics": {"kl_mean": 1.0}, "model_info": info} for n in range(3)]
    assert [run.coverage.reductions["kl_mean"] for run in build(rows)] == ["sequence", "token", "unstated"]


def test_coverage_says_what_came_from_where() -> None:
    run = one(
        [
            {"step": n, "env/reward_mean": 1.0, "ppo/mean_scores": 2.0, "foo": 3.0, "words": "x", "objective/kl": 4.0}
            for n in range(2)
        ]
    )
    assert run.framework == "trl_old"
    assert run.coverage.metrics == {"reward_mean": "ppo/mean_scores", "kl_mean": "objective/kl"}
    assert run.coverage.reductions == {"reward_mean": "sequence", "kl_mean": "sequence"}
    assert run.coverage.duplicates == {"env/reward_mean": "reward_mean"} and run.coverage.unmapped == ["foo"]
    assert values(run, "foo") == [3.0, 3.0] and "words" not in run.columns


def test_a_run_keeps_only_the_columns_it_logged() -> None:
    rows = [{"step": 1, "loss": 1.0, "run_id": "a"}, {"step": 1, "reward": 1.0, "foo": 1.0, "run_id": "b"}]
    first, second = build(rows)
    assert set(first.columns) == set(first.coverage.metrics) == {"loss"} and first.coverage.unmapped == []
    assert set(second.columns) == {"reward_mean", "foo"} and second.coverage.unmapped == ["foo"]


def test_a_second_key_fills_where_the_first_has_no_number() -> None:
    rows: list[dict[str, Any]] = [
        {"step": 1, "ppo/mean_scores": 1.0, "env/reward_mean": 9.0},
        {"step": 2, "env/reward_mean": 2.0},
    ]
    rows.append({"step": 3, "ppo/mean_scores": None, "env/reward_mean": 3.0})
    assert values(one(rows, framework="trl_old"), "reward_mean") == [1.0, 2.0, 3.0]


def test_a_sum_needs_all_its_parts_and_is_a_null_where_one_is() -> None:
    rows: list[dict[str, Any]] = [{"step": n, "solved_none": 0.25, "solved_all": 0.5} for n in range(4)]
    rows[1]["solved_all"] = None
    del rows[2]["solved_all"]
    column = one([{**row, "reward": 1.0} for row in rows], framework="prime_rl").columns["reward_zero_std_frac"]
    assert column.state.tolist() == [1, 2, 0, 1] and column.values[[0, 3]].tolist() == [0.75, 0.75]


def test_field_maps_place_rows_by_keys_of_ones_own() -> None:
    rows = [{"t": f"{n}/9", "when": "2024-01-01T00:00:00Z", "who": "ab"[n % 2], "part": "val", "my_kl": 0.5} for n in range(4)]
    given = {"t": "step", "when": "wall_time", "who": "run_id", "part": "phase", "my_kl": "kl_mean"}
    runs = build(rows, field_map=given)
    assert [(run.run_id, run.steps.tolist()) for run in runs] == [("a", [0, 2]), ("b", [1, 3])]
    assert runs[0].wall_time.tolist() == [1704067200.0] * 2
    assert values(runs[0], "eval_kl_mean") == [0.5, 0.5] and runs[0].phases().tolist() == ["val", "val"]


@pytest.mark.parametrize(
    ("keys", "kind"),
    [(["reward", "loss"], "rl"), (["kl"], "rl"), (["rewards/chosen", "loss"], "preference"), (["loss", "lr"], "supervised"),
    (["foo", "lr"], "unknown"),
     (["eval_reward", "loss"], "supervised")],
)  # fmt: skip
def test_the_kind_of_a_run(keys: list[str], kind: str) -> None:
    framework = "trl_dpo" if "rewards/chosen" in keys else None
    assert one([{"step": 1, **dict.fromkeys(keys, 1.0)}], framework=framework).kind == kind
