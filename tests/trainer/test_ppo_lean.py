"""The lean pass of learning: the model's own numbers and gradients, in one process and in several, or not at all."""

from __future__ import annotations

import copy

import pytest

pytestmark = pytest.mark.full
torch = pytest.importorskip("torch")


def small(kind: str = "llama", task: str = "CausalLM", shared: int = 1, **more):
    import transformers

    torch.manual_seed(0)
    torch.set_num_threads(1)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2} if kind == "gpt2" else {**sizes, "num_key_value_heads": shared}
    ids = {"vocab_size": 32, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    heads = {} if task == "CausalLM" else {"num_labels": 1}
    config = transformers.AutoConfig.for_model(kind, **sizes, **ids, **heads, **more)
    model = getattr(transformers, f"AutoModelFor{task}").from_config(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():  # norms and biases that are not those of a new model
            if "norm" in name or "bias" in name:
                weight.add_(0.3 * torch.randn_like(weight))
    return model


def inputs() -> dict:
    """Three rows with padding before the prompt, and after the response."""
    ids = torch.tensor([[0, 0, 5, 6, 7, 2, 0, 0], [7, 8, 9, 10, 11, 12, 13, 14], [0, 11, 12, 13, 14, 15, 16, 2]])
    mask = (ids != 0).long()
    return {
        "input_ids": ids,
        "attention_mask": mask,
        "position_ids": (mask.cumsum(1) - 1).clamp(min=0),
        "use_cache": False,
    }


PLACES = slice(3, 7)
KINDS = [
    ("llama", "CausalLM", 1, {}, True),
    ("llama", "CausalLM", 2, {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}, True),
    ("qwen2", "CausalLM", 1, {}, True),
    ("llama", "TokenClassification", 2, {}, True),
    ("qwen2", "TokenClassification", 1, {}, True),
    ("gpt2", "CausalLM", 2, {}, False),
    ("gpt2", "TokenClassification", 2, {"classifier_dropout": 0.0}, False),
    ("llama", "CausalLM", 1, {"attention_dropout": 0.1}, False),
    ("llama", "CausalLM", 1, {"hidden_act": "gelu"}, False),
]


@pytest.mark.parametrize(("kind", "task", "shared", "more", "lean"), KINDS)
def test_logits_and_gradients_are_those_of_the_model_itself(kind, task, shared, more, lean) -> None:
    from lean import answer_at_places

    own = small(kind, task, shared, **more)
    ours = answer_at_places(copy.deepcopy(own))
    given = inputs()
    there = given["attention_mask"][:, PLACES].bool()
    pull = torch.randn(3, 4, 1)
    expected, found = own(**given).logits[:, PLACES], ours(**given, places=PLACES).logits
    assert ours.lean_learns is lean and found.shape == expected.shape
    assert torch.allclose(found[there], expected[there], atol=1e-5)
    for logits in (expected, found):
        (logits.tanh() * pull)[there].sum().backward()
    for (name, one), other in zip(own.named_parameters(), ours.parameters(), strict=True):
        assert one.grad.abs().max() > 0, name
        assert torch.allclose(other.grad, one.grad, atol=1e-5 * float(one.grad.abs().max()) + 1e-7), name


@pytest.mark.parametrize("shared", [1, 2])
def test_long_sequences_and_short_ones_have_the_same_attention(shared, monkeypatch) -> None:
    """Up to a length the pass works attention out by itself, above it torch does."""
    import lean

    found = []
    for longest in (8, 7):
        monkeypatch.setattr(lean, "SHORT", longest)
        model = small(shared=shared)
        logits = lean.lean_logits(model, PLACES, **inputs())
        logits.tanh().sum().backward()
        found.append((logits, [weight.grad for weight in model.parameters()]))
    assert torch.allclose(found[0][0], found[1][0], atol=1e-5) and not found[0][0].equal(found[1][0])
    for one, other in zip(found[0][1], found[1][1], strict=True):
        assert torch.allclose(one, other, atol=1e-5 * float(one.abs().max()) + 1e-7)


@pytest.mark.parametrize("task", ["CausalLM", "TokenClassification"])
def test_under_autocast_the_pass_is_the_models_own_but_for_rounding(task) -> None:
    from lean import answer_at_places

    own = small(task=task)
    ours = answer_at_places(copy.deepcopy(own))
    there = inputs()["attention_mask"][:, PLACES].bool()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected, found = own(**inputs()).logits[:, PLACES].float(), ours(**inputs(), places=PLACES).logits.float()
    assert ours.lean_learns is True
    off, size = (found - expected)[there].detach().abs().max(), expected[there].detach().abs().max()
    assert float(off) < 0.05 * float(size)
    for logits in (expected, found):
        logits[there].square().sum().backward()
    for (name, one), other in zip(own.named_parameters(), ours.parameters(), strict=True):
        assert other.grad.dtype == torch.float32, name
        assert float((one.grad - other.grad).norm()) < 0.1 * float(one.grad.norm()), name


def test_without_places_the_model_answers_as_ever() -> None:
    from lean import answer_at_places

    own = small()
    ours = answer_at_places(copy.deepcopy(own))
    assert ours(**inputs()).logits.equal(own(**inputs()).logits) and ours.lean_learns is None
    assert answer_at_places(small(), lean=False).lean_learns is False


def test_a_pass_that_differs_is_given_up(monkeypatch) -> None:
    import lean

    own = small()
    ours = lean.answer_at_places(copy.deepcopy(own))
    right = lean.lean_logits
    monkeypatch.setattr(lean, "lean_logits", lambda *args, **given: right(*args, **given) * 1.5)
    found = ours(**inputs(), places=PLACES).logits
    assert ours.lean_learns is False
    assert torch.allclose(found, own(**inputs()).logits[:, PLACES], atol=1e-6)


def test_a_copy_of_the_weights_is_not_taken_for_the_weights() -> None:
    """The pass reads the model's weights at every call: what an optimizer did to them is seen."""
    from lean import answer_at_places

    own = small()
    ours = answer_at_places(own)
    before = ours(**inputs(), places=PLACES).logits
    with torch.no_grad():
        for weight in own.parameters():
            weight.mul_(1.1)
    after = ours(**inputs(), places=PLACES).logits
    there = inputs()["attention_mask"][:, PLACES].bool()
    assert not torch.allclose(before[there], after[there], atol=1e-3)
    assert torch.allclose(after[there], own(**inputs()).logits[:, PLACES][there], atol=1e-5)
