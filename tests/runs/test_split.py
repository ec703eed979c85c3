"""Which rows of a file are which run, by nothing but the steps and the keys they came with."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldk.runs.split import Split, split_runs


def split(steps: list[int], shapes: list[int] | None = None) -> Split:
    return split_runs(np.array(steps, dtype=np.int64), np.array(shapes or [0] * len(steps), dtype=np.int32))


def runs_of(steps: list[int], shapes: list[int] | None = None) -> list[list[int]]:
    return [[steps[row] for row in rows] for rows in split(steps, shapes).runs]


@pytest.mark.parametrize(
    ("steps", "runs"),
    [
        ([], [[]]), ([7], [[7]]), ([1, 2, 3], [[1, 2, 3]]), ([10, 20, 25], [[10, 20, 25]]),
        ([1, 2, 3, 1, 2], [[1, 2, 3], [1, 2]]),  # a restart
        ([1, 1, 2, 3], [[1], [1, 2, 3]]),  # a restart after the first step
        ([1, 1, 1, 2, 1, 2], [[1], [1], [1, 2], [1, 2]]),
        ([1, 2, 3, 4, 3, 4, 5], [[1, 2, 3, 4, 5]]),  # a resume
        ([1, 2, 3, 4, 5, 3, 4, 2, 3], [[1, 2, 3]]),  # two resumes, each further back
        ([1, 2, 3, 2, 3, 4, 1, 2], [[1, 2, 3, 4], [1, 2]]),  # a resume, then a restart
        ([10, 20, 30, 20, 30, 40], [[10, 20, 30, 40]]),
        ([0, 1, 2, 0, 3, 1, 4, 2, 5], [[0, 1, 2, 3, 4, 5], [0, 1, 2]]),  # two at the same time
        ([10, 20, 10, 30, 20, 40, 30], [[10, 20, 30, 40], [10, 20, 30]]),
        ([1, 1, 2, 2, 3, 3], [[1, 1, 2, 2, 3, 3]]),  # several rows a step
        ([1, 2, 2, 2, 3], [[1, 2, 2, 2, 3]]),
        ([3, 1, 2], [[1, 2, 3]]),  # out of order, none twice
        ([5, 4, 3, 2, 1], [[1, 2, 3, 4, 5]]),
    ],
)  # fmt: skip
def test_runs_by_their_steps(steps: list[int], runs: list[list[int]]) -> None:
    assert runs_of(steps) == runs


def test_a_resume_replaces_the_rows_it_repeats() -> None:
    found = split([1, 2, 3, 4, 3, 4, 5])
    assert [rows.tolist() for rows in found.runs] == [[0, 1, 4, 5, 6]]
    assert found.notes == ["resumed at step 3: 2 earlier rows from there on were replaced"]


def test_rows_of_one_step_with_other_keys_stay_together() -> None:
    found = split([1, 1, 2, 2, 3, 3], [0, 1, 0, 1, 0, 1])
    assert [rows.tolist() for rows in found.runs] == [[0, 1, 2, 3, 4, 5]] and found.notes == []
    assert runs_of([1, 1, 2, 3, 3], [0, 1, 0, 0, 1]) == [[1, 1, 2, 3, 3]]


def test_an_evaluation_written_late_is_put_where_it_belongs() -> None:
    found = split([1, 2, 3, 2, 4], [0, 0, 0, 1, 0])
    assert [rows.tolist() for rows in found.runs] == [[0, 1, 3, 2, 4]]
    assert found.notes == ["rows were out of order: sorted by step"]


def test_what_was_decided_is_said() -> None:
    assert split([1, 2, 3]).notes == []
    assert "2 runs follow each other" in split([1, 2, 3, 1, 2]).notes[0]
    assert "2 runs were written into this file at the same time" in split([0, 1, 2, 0, 3, 1, 4, 2, 5]).notes[0]


@pytest.mark.parametrize(
    "steps",
    [
        [*range(20_000, 0, -1), 1],
        np.random.default_rng(0).integers(0, 2000, 20_000).tolist(),
        [0] * 20_000 + [-1],
        [step for n in range(5000) for step in (n, 0)],
    ],
    ids=["falling", "random", "standing", "back and forth"],
)
def test_steps_that_make_no_sense_are_one_run_and_take_no_time(steps: list[int]) -> None:
    begun = time.process_time()
    found = split(steps)
    assert len(found.runs) <= 1000
    assert time.process_time() - begun < 10  # of a second, not of an hour
    if len(found.runs) == 1:
        assert "rows were sorted by step" in found.notes[0]
        assert sorted(steps) == [steps[row] for row in found.runs[0]]


STEPS = st.one_of(
    st.lists(st.integers(0, 8), max_size=40),
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 20)), max_size=5).map(
        lambda parts: [step for start, length in parts for step in range(start, start + length)]
    ),
)


@given(STEPS, st.data())
def test_no_row_is_lost_but_those_a_resume_replaced(steps: list[int], data: st.DataObject) -> None:
    shapes = data.draw(st.lists(st.integers(0, 1), min_size=len(steps), max_size=len(steps)))
    found = split(steps, shapes)
    rows = [row for run in found.runs for row in run.tolist()]
    assert len(rows) == len(set(rows))
    assert set(rows) <= set(range(len(steps)))
    replaced = sum(int(note.split(": ")[1].split()[0]) for note in found.notes if note.startswith("resumed"))
    assert len(steps) - len(rows) == replaced
    for run in found.runs:
        assert (np.diff(np.array(steps, dtype=np.int64)[run]) >= 0).all()
    for run in found.runs:  # of rows with the same step the later one comes later
        order = [(steps[row], row) for row in run.tolist()]
        assert order == sorted(order)


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 5))
def test_two_whole_runs_are_two(first: int, second: int, stride: int) -> None:
    one, other = [stride * n for n in range(first)], [stride * n for n in range(second)]
    if first > 1 or second > 1:
        assert runs_of([*one, *other]) == [one, other]
