"""GAE and whitening against plain loops."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.functional.advantages import gae, whiten

pytestmark = pytest.mark.full
torch = pytest.importorskip("torch")

ROW = st.tuples(
    st.lists(st.floats(-3, 3), min_size=6, max_size=6), st.lists(st.floats(-3, 3), min_size=6, max_size=6), st.integers(1, 6)
)


def plain_gae(rewards: list[float], values: list[float], length: int, gamma: float, lam: float) -> list[float]:
    """From the definition: the sum of discounted errors from each token on."""
    found = []
    for t in range(length):
        total = 0.0
        for later in range(t, length):
            following = values[later + 1] if later + 1 < length else 0.0
            total += (gamma * lam) ** (later - t) * (rewards[later] + gamma * following - values[later])
        found.append(total)
    return found


@settings(max_examples=50, deadline=None)
@given(rows=st.lists(ROW, min_size=1, max_size=4), gamma=st.floats(0, 1), lam=st.floats(0, 1))
def test_gae_is_that_of_a_plain_loop(rows, gamma, lam) -> None:
    rewards, values = (torch.tensor([row[i] for row in rows], dtype=torch.float64) for i in (0, 1))
    mask = torch.tensor([[t < row[2] for t in range(6)] for row in rows])
    advantages, returns = gae(rewards, values, mask, gamma, lam)
    for number, (given_rewards, given_values, length) in enumerate(rows):
        expected = plain_gae(given_rewards, given_values, length, gamma, lam)
        assert advantages[number, :length].tolist() == pytest.approx(expected, abs=1e-9)
        assert returns[number, :length].tolist() == pytest.approx(
            [a + v for a, v in zip(expected, given_values, strict=False)], abs=1e-9
        )
        assert advantages[number, length:].abs().sum() == 0.0 and returns[number, length:].abs().sum() == 0.0


def test_lambda_one_is_the_reward_to_come_less_the_value() -> None:
    rewards, values = torch.tensor([[1.0, 2.0, 4.0]]), torch.tensor([[0.5, 0.25, 1.0]])
    advantages, returns = gae(rewards, values, torch.ones(1, 3), 1.0, 1.0)
    assert advantages.tolist() == [[6.5, 5.75, 3.0]] and returns.tolist() == [[7.0, 6.0, 4.0]]


def test_what_stands_after_the_end_is_not_looked_at() -> None:
    rewards, values = torch.tensor([[1.0, 9.0]]), torch.tensor([[0.5, float("nan")]])
    advantages, _ = gae(rewards, values, torch.tensor([[1, 0]]))
    assert advantages.tolist() == [[0.5, 0.0]]


@settings(max_examples=50, deadline=None)
@given(values=st.lists(st.floats(-100, 100), min_size=2, max_size=20), seed=st.integers(0, 99))
def test_whitening_is_that_of_a_plain_loop(values, seed) -> None:
    mask = torch.rand(len(values), generator=torch.Generator().manual_seed(seed)) < 0.7
    mask[0] = True
    counted = [value for value, on in zip(values, mask.tolist(), strict=True) if on]
    mean = sum(counted) / len(counted)
    var = sum((value - mean) ** 2 for value in counted) / len(counted)
    expected = [(v - mean) / math.sqrt(var + 1e-8) if on else 0.0 for v, on in zip(values, mask.tolist(), strict=True)]
    assert whiten(torch.tensor(values, dtype=torch.float64), mask).tolist() == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_parts_are_whitened_by_the_moments_of_the_whole() -> None:
    values, mask = torch.tensor([1.0, 2.0, 3.0, 10.0]), torch.ones(4)
    mean, var = values.mean(), values.var(correction=0)
    parts = [whiten(values[at : at + 2], mask[:2], mean, var) for at in (0, 2)]
    assert torch.allclose(torch.cat(parts), whiten(values, mask))


SCORES = st.lists(st.lists(st.floats(-3, 3), min_size=4, max_size=4), min_size=1, max_size=5)


@settings(max_examples=50, deadline=None)
@given(groups=SCORES)
def test_advantages_within_groups_are_those_of_plain_loops(groups) -> None:
    import statistics

    from rldk.functional.advantages import group_relative, leave_one_out

    scores = torch.tensor(groups, dtype=torch.float64).flatten()
    grpo, dr_grpo, rloo = [], [], []
    for group in groups:
        mean, spread = statistics.fmean(group), statistics.stdev(group)
        for number, score in enumerate(group):
            others = [other for place, other in enumerate(group) if place != number]
            grpo.append((score - mean) / (spread + 1e-4))
            dr_grpo.append(score - mean)
            rloo.append(score - statistics.fmean(others))
    assert group_relative(scores, 4).tolist() == pytest.approx(grpo, abs=1e-6)
    assert group_relative(scores, 4, scale=False).tolist() == pytest.approx(dr_grpo, abs=1e-9)
    assert leave_one_out(scores, 4).tolist() == pytest.approx(rloo, abs=1e-9)


@pytest.mark.parametrize("group", [1, 3])
def test_groups_must_divide_the_scores(group: int) -> None:
    from rldk.functional.advantages import leave_one_out

    with pytest.raises(ValueError, match=f"groups of {group}"):
        leave_one_out(torch.zeros(8), group)
