"""Shared weights, dropout and the variety of prompts, on models made for the purpose."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")

from rldk.functional.preflight import DistinctCount, digest, has_dropout, shares_weights  # noqa: E402


class Answer:
    def __init__(self, logits: torch.Tensor) -> None:
        self.logits = logits


class Policy(torch.nn.Module):
    """The least that answers as a language model does."""

    def __init__(self, share: float = 0.0, functional: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.out = torch.nn.Embedding(20, 8), torch.nn.Linear(8, 20)
        self.drop = torch.nn.Dropout(share)
        self.functional = functional

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Answer:
        hidden = self.drop(self.embed(input_ids))
        return Answer(self.out(torch.nn.functional.dropout(hidden, self.functional, self.training)))


def test_a_reference_of_its_own_is_told_from_one_that_is_trained_along() -> None:
    policy = Policy()
    assert shares_weights(policy, copy.deepcopy(policy)) is False
    assert shares_weights(policy, policy) is True
    other = copy.deepcopy(policy)
    other.out.weight = policy.out.weight
    assert shares_weights(policy, other) is True
    policy.out.weight.requires_grad_(False)  # a layer that both share and nobody trains
    assert shares_weights(policy, other) is False


def test_weights_that_are_not_here_cannot_be_compared() -> None:
    assert shares_weights(Policy().to("meta"), Policy()) is None
    assert shares_weights(Policy(), Policy().to("meta")) is None


@pytest.mark.parametrize(
    ("policy", "active"), [(Policy(), False), (Policy(share=0.1), True), (Policy(functional=0.1), True)]
)  # fmt: skip
def test_dropout_is_told_by_modules_or_by_two_answers_and_only_in_training_mode(policy: Policy, active: bool) -> None:
    assert has_dropout(policy.train()) is active
    assert has_dropout(policy.eval()) is False
    assert policy.training is False


def test_dropout_in_a_function_is_told_by_a_setting_of_its_module_too() -> None:
    policy = Policy()
    policy.out.attention_dropout = 0.1
    assert has_dropout(policy, try_it=False) is True
    assert has_dropout(Policy(functional=0.5), try_it=False) is False


def test_the_look_for_dropout_leaves_random_numbers_gradients_and_weights_as_they_were() -> None:
    policy = Policy(functional=0.5)
    torch.manual_seed(3)
    wanted = torch.rand(4)
    torch.manual_seed(3)
    assert has_dropout(policy) is True
    assert torch.equal(torch.rand(4), wanted)
    assert all(one.grad is None for one in policy.parameters())


def test_different_things_are_counted_once_and_up_to_a_bound() -> None:
    count = DistinctCount(max_count=3)
    assert count.add([digest(b"a"), digest(b"b"), digest(b"a")]) == 2
    assert count.add([digest(b"b")]) == 2
    assert count.add(digest(bytes([n])) for n in range(10)) == 3
    assert count.add([digest(b"z")]) == 3 and len(count._seen) == 12  # one batch over the bound, and none after it
    assert digest(b"a") == 4681665781835383343  # and so in every process
