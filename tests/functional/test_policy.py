"""The losses of PPO and its measures against plain loops."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldk.functional import policy

pytestmark = pytest.mark.full
torch = pytest.importorskip("torch")

NUMBER = st.floats(-2, 2)
ROWS = st.lists(st.tuples(NUMBER, NUMBER, NUMBER, st.booleans()), min_size=1, max_size=20).filter(
    lambda rows: any(r[3] for r in rows)
)


def columns(rows):
    first, second, third = (torch.tensor([row[i] for row in rows], dtype=torch.float64) for i in range(3))
    return first, second, third, torch.tensor([row[3] for row in rows])


@settings(max_examples=50, deadline=None)
@given(rows=ROWS, clip=st.floats(0.01, 2))
def test_the_policy_loss_is_that_of_a_plain_loop(rows, clip) -> None:
    losses = []
    for new, old, advantage, on in rows:
        if on:
            ratio = math.exp(new - old)
            losses.append(-min(ratio * advantage, min(max(ratio, 1 - clip), 1 + clip) * advantage))
    assert policy.policy_loss(*columns(rows), clip).item() == pytest.approx(sum(losses) / len(losses), abs=1e-9)


@settings(max_examples=50, deadline=None)
@given(rows=ROWS, clip=st.floats(0.01, 2))
def test_the_value_loss_is_that_of_a_plain_loop(rows, clip) -> None:
    losses = []
    for value, old, target, on in rows:
        if on:
            clipped = min(max(value, old - clip), old + clip)
            losses.append(0.5 * max((value - target) ** 2, (clipped - target) ** 2))
    assert policy.value_loss(*columns(rows), clip).item() == pytest.approx(sum(losses) / len(losses), abs=1e-9)


@settings(max_examples=50, deadline=None)
@given(rows=ROWS, clip=st.floats(0.01, 2))
def test_clip_fraction_and_update_kl(rows, clip) -> None:
    new, old, _, mask = columns(rows)
    ratios = [math.exp(row[0] - row[1]) for row in rows if row[3]]
    n = len(ratios)
    clipped = sum(abs(ratio - 1) > clip for ratio in ratios) / n
    assert policy.clip_fraction(new, old, mask, clip).item() == pytest.approx(
        clipped, abs=1.01 / n if _on_edge(ratios, clip) else 1e-9
    )
    assert policy.update_kl(new, old, mask).item() == pytest.approx(sum(r - 1 - math.log(r) for r in ratios) / n, abs=1e-9)


def _on_edge(ratios: list[float], clip: float) -> bool:
    return any(abs(abs(ratio - 1) - clip) < 1e-9 for ratio in ratios)


@settings(max_examples=30, deadline=None)
@given(logits=st.lists(st.floats(-20, 20), min_size=2, max_size=10), chosen=st.integers(0, 1))
def test_log_probabilities_and_entropy_are_those_of_a_plain_loop(logits, chosen) -> None:
    top = max(logits)
    total = math.log(sum(math.exp(x - top) for x in logits)) + top
    tensor = torch.tensor([logits], dtype=torch.float64)
    assert policy.selected_logprobs(tensor, torch.tensor([chosen])).item() == pytest.approx(logits[chosen] - total, abs=1e-9)
    entropy = -sum(math.exp(x - total) * (x - total) for x in logits)
    assert policy.entropy_of(tensor).item() == pytest.approx(entropy, abs=1e-9)


def test_a_token_that_cannot_be_has_no_share_in_the_entropy() -> None:
    logits = torch.tensor([[0.0, 0.0, -math.inf]])
    assert policy.entropy_of(logits).item() == pytest.approx(math.log(2))


def test_parts_of_a_batch_sum_up_to_the_whole() -> None:
    torch.manual_seed(0)
    new, old, advantages = torch.randn(3, 6, 5, dtype=torch.float64) * 0.3
    mask = torch.rand(6, 5) < 0.6
    whole = policy.policy_loss(new, old, advantages, mask, 0.2)
    parts = [policy.policy_loss(new[i], old[i], advantages[i], mask[i], 0.2, count=mask.sum()) for i in range(6)]
    assert sum(parts).item() == pytest.approx(whole.item(), abs=1e-12)


def test_explained_variance_from_perfect_to_worse_than_a_constant() -> None:
    returns, mask = torch.tensor([1.0, 2.0, 3.0, 99.0]), torch.tensor([1, 1, 1, 0])
    assert policy.explained_variance(returns.clone(), returns, mask) == 1.0
    assert policy.explained_variance(torch.zeros(4), returns, mask) == 0.0
    assert policy.explained_variance(-returns, returns, mask) == pytest.approx(-3.0)
    assert math.isnan(policy.explained_variance(returns, torch.ones(4), mask))


def test_the_gradient_of_a_clipped_token_is_zero() -> None:
    new = torch.tensor([0.5, 0.0], requires_grad=True)
    policy.policy_loss(new, torch.zeros(2), torch.ones(2), torch.ones(2), 0.2).backward()
    assert new.grad.tolist() == [0.0, -0.5]


@settings(max_examples=50, deadline=None)
@given(rows=ROWS, low=st.floats(0.01, 1), high=st.floats(0.01, 2))
def test_an_asymmetric_clip_and_weights_of_tokens(rows, low, high) -> None:
    losses, outside = 0.0, 0
    weights = torch.linspace(0.1, 1.0, len(rows), dtype=torch.float64)
    for (new, old, advantage, on), weight in zip(rows, weights.tolist(), strict=True):
        if on:
            ratio = math.exp(new - old)
            losses += weight * -min(ratio * advantage, min(max(ratio, 1 - low), 1 + high) * advantage)
            outside += ratio < 1 - low or ratio > 1 + high
    new, old, advantage, mask = columns(rows)
    found = policy.policy_loss(new, old, advantage, mask, low, clip_high=high, weights=weights)
    assert found.item() == pytest.approx(losses, abs=1e-9)
    n = int(mask.sum())
    assert policy.clip_fraction(new, old, mask, low, clip_high=high).item() == pytest.approx(outside / n, abs=1.01 / n)


LENGTHS = st.lists(st.integers(1, 6), min_size=1, max_size=6)


@settings(max_examples=50, deadline=None)
@given(lengths=LENGTHS)
def test_the_ways_to_aggregate_a_loss_against_plain_loops(lengths) -> None:
    mask = torch.tensor([[1] * length + [0] * (6 - length) for length in lengths])
    losses = torch.arange(mask.numel(), dtype=torch.float64).view(mask.shape)
    rows = [row[:length] for row, length in zip(losses.tolist(), lengths, strict=True)]
    expected = {
        "token": sum(map(sum, rows)) / sum(lengths),
        "sequence": sum(sum(row) / len(row) for row in rows) / len(rows),
        "length": sum(map(sum, rows)) / (len(rows) * 10),
    }
    for by, value in expected.items():
        found = (policy.token_weights(mask, by, longest=10).double() * losses).sum().item()
        assert found == pytest.approx(value, rel=1e-6)
        halves = [mask[: len(mask) // 2], mask[len(mask) // 2 :]]
        parts = [policy.token_weights(half, by, sum(lengths), len(lengths), 10) for half in halves if len(half)]
        assert torch.cat(parts).equal(policy.token_weights(mask, by, longest=10))  # of parts as of the whole
    with pytest.raises(ValueError, match="token"):
        policy.token_weights(mask, "word")
