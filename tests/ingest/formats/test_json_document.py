"""One JSON document: rows, lists side by side, lists nested by phase."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rldk.core.errors import ReadError
from rldk.ingest.choose import choose
from rldk.ingest.formats.json_document import JsonDocumentAdapter


def read(text_log: Any, document: Any, adapter: str = "json") -> Any:
    return text_log.run(json.dumps(document, indent=1), adapter)


def test_a_list_of_rows(text_log: Any) -> None:
    run = read(text_log, [{"iteration": n, "mean_reward": 0.5 * n, "kl_div": 0.1} for n in (1, 2, 3)])
    assert run.steps.tolist() == [1, 2, 3]
    assert text_log.values(run, "reward_mean") == [0.5, 1.0, 1.5]


@pytest.mark.parametrize("key", ["step_logs", "history", "training_history"])
def test_rows_under_a_name(text_log: Any, key: str) -> None:
    run = read(text_log, {"config": {"lr": 1e-6}, key: [{"step": n, "mean_reward": 0.5, "kl_div": 0.1} for n in (1, 2)]})
    assert run.steps.tolist() == [1, 2]


def test_lists_side_by_side(text_log: Any) -> None:
    run = read(text_log, {"steps": [10, 20, 30], "rewards": [0.1, None, 0.3], "kl_div": [0.0, 0.5, float("nan")], "name": "x"})
    assert run.steps.tolist() == [10, 20, 30]
    assert text_log.values(run, "reward_mean") == [0.1, None, 0.3]
    kl = text_log.values(run, "kl_mean")
    assert kl[:2] == [0.0, 0.5] and kl[2] != kl[2]


def test_lists_without_steps_are_numbered(text_log: Any) -> None:
    run = read(text_log, {"rewards": [0.1, 0.2, 0.3], "losses": [1, 2, 3], "loss": [3, 2, 1]})
    assert run.steps.tolist() == [1, 2, 3]
    assert text_log.values(run, "loss") == [3, 2, 1]


def test_lists_nested_by_phase_keep_their_own_steps(text_log: Any) -> None:
    document = {
        "train": {"step": [1, 2, 3, 4], "loss": [4, 3, 2, 1], "reward": [0, 1, 2, 3]},
        "eval": {"step": [2, 4], "reward": [5, 6]},
    }
    run = read(text_log, document)
    assert run.steps.tolist() == [1, 2, 3, 4]
    assert text_log.values(run, "loss") == [4, 3, 2, 1]
    assert text_log.values(run, "reward_mean") == [0, 1, 2, 3]
    assert text_log.values(run, "eval_reward_mean") == [None, 5, None, 6]


def test_a_list_that_cannot_be_placed_is_left_out_and_named(text_log: Any) -> None:
    run = read(text_log, {"step": [1, 2, 3], "loss": [3, 2, 1], "reward": [1, 2, 3], "eval_reward": [9, 9]})
    assert "eval_reward_mean" not in run.columns
    assert any("eval_reward" in note for note in run.notes)


def test_a_short_list_with_one_value_at_the_end_of_each_interval_is_placed(text_log: Any) -> None:
    train = {"step": list(range(1, 13)), "reward": [0.1 * n for n in range(12)]}
    run = read(text_log, {**train, "eval_reward": [0.2, 0.4, 0.6]})
    assert text_log.values(run, "eval_reward_mean") == [None, None, None, 0.2, None, None, None, 0.4, None, None, None, 0.6]
    assert any("one value every 4 rows: eval_reward" in note for note in run.notes)
    for count in (2, 5):  # two may be first and last; five cannot stand at equal distances among twelve
        run = read(text_log, {**train, "eval_reward": [0.5] * count})
        assert "eval_reward_mean" not in run.columns and len(run) == 12


def test_a_document_larger_than_its_head(text_log: Any) -> None:
    count = 60000
    run = read(text_log, {"step": list(range(count)), "reward": [0.5] * count, "kl_div": [0.25] * count})
    assert len(run) == count


def test_a_configuration_is_no_run(text_log: Any) -> None:
    with pytest.raises(ReadError):
        choose(text_log.write(json.dumps({"learning_rate": 1e-6, "kl_coef": 0.1, "reward": 1.0, "model": {"layers": 3}})))


def test_cut_off_at_every_byte(text_log: Any) -> None:
    text_log.cut_everywhere(
        json.dumps([{"iteration": n, "mean_reward": 0.5 * n, "kl_div": 0.125} for n in (1, 2, 3)]), JsonDocumentAdapter
    )
    text_log.cut_everywhere(json.dumps({"step": [1, 2, 3], "reward": [0.5, 0.25, 0.125]}), JsonDocumentAdapter)


@pytest.mark.parametrize("other", ["{'loss': 1.0}\n", "step,loss\n1,2\n", "step=1 loss=2\n", "[1, 2, 3]", "{}", "[]", '"text"'])
def test_other_text_is_declined(text_log: Any, other: str) -> None:
    assert not JsonDocumentAdapter(text_log.write(other)).can_handle()


def test_rows_of_one_line_each_in_a_document_over_lines(text_log: Any) -> None:
    rows = ",\n".join(f'      {{"iteration": {n},  "reward_mean": 0.{n}, "kl": 0.01}}' for n in (1, 2, 3))
    text = f'{{\n  "config": {{"lr": 1e-5}},\n  "training": {{\n    "log": [\n{rows}\n    ]\n  }}\n}}\n'
    run = text_log.run(text, "json")
    assert run.steps.tolist() == [1, 2, 3]
    assert text_log.values(run, "reward_mean") == [0.1, 0.2, 0.3]
