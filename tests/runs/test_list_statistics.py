"""Lists of numbers in a row: the mean, spread and ends of what they measure, by the general way and by the fast one."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rldk.core.errors import ReadError
from rldk.ingest import read_runs
from rldk.runs.list_statistics import statistics_of
from rldk.runs.run import Run


def read(tmp_path: Path, *rows: dict[str, Any]) -> Run:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = read_runs(path).runs
    return run


@pytest.mark.parametrize("count", [3, 400])
def test_a_list_of_rewards_is_their_mean_spread_and_ends(tmp_path: Path, count: int) -> None:
    lists = [[1.0, 0.0, 0.5, n / 8] for n in range(count)]
    run = read(tmp_path, *({"step": n, "rewards": rewards, "ids": [n, 1]} for n, rewards in enumerate(lists)))
    cells = np.array(lists)
    assert run.columns["reward_mean"].values.tolist() == cells.mean(axis=1).tolist()
    assert run.columns["reward_std"].values == pytest.approx(cells.std(axis=1, ddof=1))
    assert run.columns["reward_min"].values.tolist() == cells.min(axis=1).tolist()
    assert run.columns["reward_max"].values.tolist() == cells.max(axis=1).tolist()
    assert run.coverage.unmapped == []
    assert len(run) == count


def test_what_the_row_says_itself_wins(tmp_path: Path) -> None:
    row = {"rewards": [1.0, 0.0], "mean_reward": 0.6, "reward_std": 0.7}
    run = read(tmp_path, {"step": 1, **row}, {"step": 2, **row})
    assert run.columns["reward_mean"].values.tolist() == [0.6, 0.6]
    assert run.columns["reward_std"].values.tolist() == [0.7, 0.7]
    assert run.columns["reward_max"].values.tolist() == [1.0, 1.0]


def test_lists_of_any_length_are_read_and_empty_ones_say_nothing(tmp_path: Path) -> None:
    lists: list[Any] = [[1.0, None, 0.0], [], [0.5], None, 0.25, ["x", 1.0], [[1.0], [0.0]]]
    run = read(tmp_path, *({"step": n, "loss": 0.5, "reward": rewards} for n, rewards in enumerate(lists)))
    means = run.columns["reward_mean"].values
    assert [None if math.isnan(value) else value for value in means.tolist()] == [0.5, None, 0.5, None, 0.25, None, None]
    assert np.isfinite(run.columns["reward_std"].values).tolist() == [True] + 6 * [False], "one has no spread"


def test_a_list_with_a_value_that_is_not_finite_is_not_finite() -> None:
    found = {name: values.tolist() for name, _, values in statistics_of("rewards", [[1.0, math.inf], [math.nan, 1.0]])}
    assert found["rewards"][0] == math.inf and math.isnan(found["rewards"][1])


def test_answers_that_are_right_or_wrong_are_a_share(tmp_path: Path) -> None:
    run = read(tmp_path, *({"step": n, "loss": 0.1, "correct": [True, False, True, True]} for n in (1, 2)))
    assert run.columns["accuracy"].values.tolist() == [0.75, 0.75]


def test_lists_alone_make_a_log(tmp_path: Path) -> None:
    run = read(tmp_path, {"n": 1, "rewards": [1.0, 0.0]}, {"n": 2, "rewards": [1.0, 1.0]})
    assert run.columns["reward_mean"].values.tolist() == [0.5, 1.0]


def test_lists_that_nobody_knows_are_no_metrics(tmp_path: Path) -> None:
    with pytest.raises(ReadError):
        read(tmp_path, {"n": 1, "tokens": [1, 2]}, {"n": 2, "tokens": [3, 4]})


@pytest.mark.parametrize("count", [2, 400])
def test_an_object_of_rewards_is_the_reward_and_its_parts(tmp_path: Path, count: int) -> None:
    rewards = [{"correct": n % 2, "format": 1.0, "total": 0.5 + n % 2} for n in range(count)]
    run = read(tmp_path, *({"ts": 1e9 + n, "reward": reward, "completion_len": 549} for n, reward in enumerate(rewards)))
    assert run.columns["reward_mean"].values[:2].tolist() == [0.5, 1.5]
    assert run.columns["reward_function_mean/format"].values[:2].tolist() == [1.0, 1.0]
    assert run.columns["reward_function_mean/correct"].values[:2].tolist() == [0.0, 1.0]
    assert run.wall_time[:2].tolist() == [1e9, 1e9 + 1] and run.coverage.unmapped == []


def test_an_object_may_hold_the_list(tmp_path: Path) -> None:
    run = read(tmp_path, *({"step": n, "loss": 0.5, "train": {"rewards": [1.0, 0.0]}} for n in range(50)))
    assert run.columns["reward_mean"].values.tolist() == [0.5] * 50
