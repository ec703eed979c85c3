"""pass@k against the definition: all choices of k among n answers, one by one."""

from __future__ import annotations

from itertools import combinations

import pytest

from rldk.functional.pass_at_k import mean_pass_at_k, pass_at_k


def by_definition(answers: list[bool], k: int) -> float:
    choices = list(combinations(answers, k))
    return sum(any(choice) for choice in choices) / len(choices)


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_the_share_of_choices_with_a_right_answer(n: int) -> None:
    for right in range(n + 1):
        answers = [True] * right + [False] * (n - right)
        for k in range(1, n + 1):
            assert pass_at_k(n, right, k) == pytest.approx(by_definition(answers, k), abs=1e-12)


def test_large_counts_do_not_overflow_and_differ_from_the_biased_estimate() -> None:
    assert pass_at_k(10_000, 1, 100) == pytest.approx(0.01)
    assert pass_at_k(4, 1, 4) == 1.0 and 1 - (1 - 1 / 4) ** 4 < 0.7


def test_the_mean_over_prompts() -> None:
    rows = [[True, False, False], [False, False, False], [True, True, True]]
    expected = sum(by_definition(row, 2) for row in rows) / 3
    assert mean_pass_at_k(rows, 2) == pytest.approx(expected)


@pytest.mark.parametrize(("n", "right", "k"), [(3, 1, 0), (3, 1, 4), (3, 4, 1), (3, -1, 1)])
def test_numbers_that_cannot_be_are_refused(n: int, right: int, k: int) -> None:
    with pytest.raises(ValueError, match="Expected"):
        pass_at_k(n, right, k)


def test_no_prompts_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one prompt"):
        mean_pass_at_k([], 1)
