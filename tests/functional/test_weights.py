"""How far weights move, beside a plain sum over all of them."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from rldk.functional.weights import WeightSample  # noqa: E402


def layers(count: int = 3, width: int = 8, dtype: object = None) -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(count)]).to(dtype=dtype or torch.float32)


def moved_by(model: torch.nn.Module, change: object, **options: object) -> float | None:
    sample = WeightSample(model, **options)
    sample.measure()
    with torch.no_grad():
        change(model)
    sample.measure()
    return sample.read()


def test_the_change_is_that_of_all_sampled_weights_together() -> None:
    model = layers()
    before = [one.weight.detach().clone().double() for one in model]

    def step(model: torch.nn.Module) -> None:
        for number, one in enumerate(model):
            one.weight.add_(0.01 * number)

    found = moved_by(model, step)
    norm = math.sqrt(
        sum(float((one.weight.detach().double() - old).pow(2).sum()) for one, old in zip(model, before, strict=True))
    )
    assert found == pytest.approx(norm / math.sqrt(sum(float(old.pow(2).sum()) for old in before)), rel=1e-5)


def test_nothing_moved_is_exactly_zero_and_so_is_what_bfloat16_rounds_away() -> None:
    assert moved_by(layers(), lambda model: None) == 0.0
    assert moved_by(layers(dtype=torch.bfloat16), lambda model: [one.weight.mul_(1 + 1e-4) for one in model]) == 0.0
    assert moved_by(layers(), lambda model: [one.weight.mul_(1 + 1e-4) for one in model]) == pytest.approx(1e-4, rel=1e-2)


def test_several_updates_are_read_as_their_mean_and_reading_begins_anew() -> None:
    model, change = layers(), []
    sample = WeightSample(model)
    sample.measure()
    assert sample.read() is None  # there is nothing to compare with yet
    for factor in (1.1, 1.0, 1.2):
        with torch.no_grad():
            for one in model:
                one.weight.mul_(factor)
        sample.measure()
        change.append(factor - 1)
    assert sample.read() == pytest.approx(sum(change) / 3, rel=1e-4)
    assert sample.read() is None


def test_only_what_is_trained_is_sampled_and_all_of_a_frozen_model() -> None:
    model = layers()
    model[0].requires_grad_(False)
    assert WeightSample(model).names == ["1.weight", "2.weight"]
    assert WeightSample(model, trained={id(model[2].weight)}).names == ["2.weight"]
    assert WeightSample(model, trained={id(torch.zeros(1))}).names == ["1.weight", "2.weight"]
    assert WeightSample(model.requires_grad_(False)).names == ["0.weight", "1.weight", "2.weight"]
    assert WeightSample(model, leave_out={id(one) for one in model.parameters()}).names == []


def test_the_sample_is_small_whatever_the_model() -> None:
    model = torch.nn.Sequential(*[torch.nn.Linear(300, 400) for _ in range(20)])
    sample = WeightSample(model)
    assert sample.names == ["0.weight", "6.weight", "13.weight", "19.weight"]
    sample.measure()
    assert sample._before.size <= 4 * 65536
    assert sample._before.base is None and sample._before.nbytes <= 4 * 4 * 65536  # a copy, and no view of the weights


def test_embeddings_of_which_few_rows_move_are_left_out_where_there_is_more() -> None:
    model = torch.nn.ModuleDict({"embed_tokens": torch.nn.Embedding(50, 4), "out": torch.nn.Linear(4, 4)})
    assert WeightSample(model).names == ["out.weight"]
    assert WeightSample(torch.nn.ModuleDict({"embed_tokens": torch.nn.Embedding(50, 4)})).names == ["embed_tokens.weight"]


def test_of_an_adapter_both_halves_are_sampled_since_one_stays_at_first() -> None:
    model = torch.nn.Module()
    model.base = layers(2).requires_grad_(False)
    for number in range(6):
        part = torch.nn.Module()
        part.lora_A, part.lora_B = torch.nn.Linear(8, 2, bias=False), torch.nn.Linear(2, 8, bias=False)
        torch.nn.init.zeros_(part.lora_B.weight)
        model.add_module(f"layer{number}", part)
    sample = WeightSample(model)
    assert [name.split(".")[1] for name in sample.names] == ["lora_A", "lora_A", "lora_B", "lora_B"]

    def first_step(model: torch.nn.Module) -> None:
        for name, one in model.named_parameters():
            if "lora_B" in name:
                one.add_(0.01)

    assert 0.0 < moved_by(model, first_step) < 1.0


def test_weights_that_were_all_zero_have_a_finite_change() -> None:
    model = layers(1)
    torch.nn.init.zeros_(model[0].weight)
    assert moved_by(model, lambda model: model[0].weight.add_(1.0)) == pytest.approx(1.0)
    torch.nn.init.zeros_(model[0].weight)
    assert moved_by(model, lambda model: None) == 0.0


def test_weights_loaded_by_replacing_a_parameter_are_seen() -> None:
    other = {name: one + 1.0 for name, one in layers().state_dict().items()}
    assert moved_by(layers(), lambda model: model.load_state_dict(other, assign=True)) > 1.0


def test_weights_that_are_not_finite_are_told_and_quantised_bytes_are_not_sampled() -> None:
    assert math.isnan(moved_by(layers(), lambda model: model[0].weight.fill_(math.nan)))
    model = layers(1).requires_grad_(False)
    model[0].weight = torch.nn.Parameter(torch.zeros(8, 8, dtype=torch.uint8), requires_grad=False)
    assert WeightSample(model).names == ["0.bias"]


def test_training_is_left_as_it_is() -> None:
    model = layers()
    model(torch.ones(2, 8)).sum().backward()
    grads = [one.grad.clone() for one in model.parameters()]
    sample = WeightSample(model)
    sample.measure()
    sample.measure()
    assert all(torch.equal(one.grad, grad) for one, grad in zip(model.parameters(), grads, strict=True))
    assert not hasattr(sample._before, "requires_grad")
