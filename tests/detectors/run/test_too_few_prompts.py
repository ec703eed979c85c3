"""Data of a handful of prompts."""

from __future__ import annotations

import numpy as np

from rldk.detectors.run.too_few_prompts import TooFewPrompts

AT = np.arange(50)


def test_four_prompts_after_ten_rows_are_too_few(told):
    assert told(TooFewPrompts(), {"distinct_prompts": np.minimum(AT + 1, 3)}) == [(9, "warning", "few")]
    assert told(TooFewPrompts(), {"distinct_prompts": np.minimum(AT + 1, 4)}) == [(9, "warning", "few")]
    assert told(TooFewPrompts(), {"distinct_prompts": np.minimum(AT + 1, 5)}) == []
    assert told(TooFewPrompts(), {"distinct_prompts": np.ones(9)}) == []


def test_a_data_set_that_repeats_itself_is_a_note(told):
    def data(share: float, size: float) -> dict[str, np.ndarray]:
        return {"distinct_prompts_frac": np.full(5, share), "dataset_size": np.full(5, size)}

    assert told(TooFewPrompts(), data(0.02, 1000.0)) == [(0, "note", "repeated")]
    assert told(TooFewPrompts(), data(0.06, 1000.0)) == []
    assert told(TooFewPrompts(), data(0.02, 10.0)) == []


def test_pairs_of_a_data_set_that_repeats_itself_are_learnt_by_heart(told):
    def said(share: float, accuracy: float, loss: float) -> list[str]:
        rows = {"distinct_prompts_frac": share, "dataset_size": 800.0, "preference_accuracy": accuracy, "loss": loss}
        return [clause for _, _, clause in told(TooFewPrompts(), {name: np.full(30, value) for name, value in rows.items()})]

    assert said(0.02, 1.0, 0.05) == ["repeated", "by_heart"]
    assert said(0.02, 1.0, 0.3) == said(0.02, 0.9, 0.05) == ["repeated"]
    assert said(0.2, 1.0, 0.05) == []


def test_a_whole_data_set_of_a_few_prompts_is_a_warning_at_once(told):
    def data(count: float, size: float) -> dict[str, np.ndarray]:
        return {"distinct_prompts_frac": np.full(5, count / size), "dataset_size": np.full(5, size)}

    assert [said for _, *said in told(TooFewPrompts(), data(2.0, 144.0))] == [["warning", "few"]]
    assert told(TooFewPrompts(), data(5.0, 60.0)) == []
    assert [said for _, *said in told(TooFewPrompts(), data(6.0, 480.0))] == [["warning", "handful"]]
    assert [said for _, *said in told(TooFewPrompts(), data(10.0, 200.0))] == [["warning", "handful"]]
    assert [said for _, *said in told(TooFewPrompts(), data(12.0, 480.0))] == [["note", "repeated"]]
    assert [said for _, *said in told(TooFewPrompts(), data(20.0, 10_000.0))] == [["note", "repeated"]]  # not all were seen


def test_training_that_continues_with_two_prompts_is_critical(told):
    two = [(9, "warning", "few"), (28, "critical", "one_or_two")]
    assert told(TooFewPrompts(), {"distinct_prompts": np.minimum(AT + 1, 2)}) == two
    assert told(TooFewPrompts(), {"distinct_prompts": np.minimum(AT[:25] + 1, 2)}) == two[:1]
