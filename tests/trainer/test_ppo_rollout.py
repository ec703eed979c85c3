"""Rollouts: the lean pass is the model's own, and a response depends on its prompt and its noise alone."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.full
torch = pytest.importorskip("torch")


def small(kind: str = "llama", shared: int = 1, **more):
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    if kind == "gpt2":
        sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64}
    else:
        sizes["num_key_value_heads"] = shared
    ids = {"vocab_size": 32, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **sizes, **ids, **more)).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():  # norms and biases that are not those of a new model
            if "norm" in name or "bias" in name:
                weight.add_(0.3 * torch.randn_like(weight))
    return model


def prompts():
    ids = torch.tensor([[0, 0, 5, 6], [7, 8, 9, 10], [0, 11, 12, 13]])
    return ids, (ids != 0).long()


BIASED = {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "rms_norm_eps": 0.1}
KINDS = [
    ("llama", 1, {}, True),
    ("llama", 2, BIASED, True),
    ("qwen2", 1, {}, True),
    ("gpt2", 2, {}, False),
    ("llama", 1, {"hidden_act": "gelu"}, False),
]


@pytest.mark.parametrize(("kind", "shared", "more", "lean"), KINDS)
def test_log_probabilities_are_those_of_the_model_itself(kind, shared, more, lean) -> None:
    from rollout import generate, sampling_noise

    model = small(kind, shared, **more)
    ids, mask = prompts()
    for step in range(3):
        roll = generate(model, ids, mask, sampling_noise(0, step, 3, 12), 0.8, eos=2, pad=0)
    assert getattr(model, "lean_agrees", False) is lean
    positions = (roll.attention.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        logits = model(input_ids=roll.tokens, attention_mask=roll.attention, position_ids=positions).logits[:, 3:-1] / 0.8
    expected = logits.log_softmax(-1).gather(-1, roll.responses[..., None])[..., 0] * roll.mask
    assert torch.allclose(roll.logprobs, expected, atol=2e-5)


def test_under_autocast_responses_are_still_written_leanly() -> None:
    from rollout import generate, sampling_noise

    model = small()
    ids, mask = prompts()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        roll = generate(model, ids, mask, sampling_noise(0, 1, 3, 12), 1.0, eos=-1, pad=0)
    assert model.lean_agrees is True and roll.logprobs.dtype == torch.float32
    positions = (roll.attention.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        logits = model(input_ids=roll.tokens, attention_mask=roll.attention, position_ids=positions).logits[:, 3:-1]
    expected = logits.log_softmax(-1).gather(-1, roll.responses[..., None])[..., 0]
    assert float((roll.logprobs - expected).abs().max()) < 0.05


def test_weights_that_are_not_float32_go_through_the_models_own_pass() -> None:
    from rollout import generate, sampling_noise

    model = small().to(torch.bfloat16)
    roll = generate(model, *prompts(), sampling_noise(0, 1, 3, 4), 1.0, eos=2, pad=0)
    assert not hasattr(model, "lean_agrees") and bool(roll.logprobs.isfinite().all())


def test_a_response_does_not_depend_on_the_batch_it_is_in() -> None:
    from rollout import generate, sampling_noise

    model = small()
    ids, mask = prompts()
    noise = sampling_noise(3, 1, 3, 10)
    whole = generate(model, ids, mask, noise, 1.0, 2, 0)
    for row in range(3):
        alone = generate(model, ids[row : row + 1], mask[row : row + 1], noise[row : row + 1], 1.0, 2, 0)
        length = int(whole.mask[row].sum())
        assert alone.responses[0, :length].tolist() == whole.responses[row, :length].tolist()


def test_a_lean_pass_that_differs_is_given_up() -> None:
    from rollout import LeanDecoder, generate, sampling_noise

    model = small()
    ids, mask = prompts()
    right = generate(model, ids, mask, sampling_noise(0, 1, 3, 10), 1.0, 2, 0)
    del model.lean_agrees
    call = LeanDecoder.__call__
    try:
        LeanDecoder.__call__ = lambda self, token, place: call(self, token, place) * 1.5
        found = generate(model, ids, mask, sampling_noise(0, 1, 3, 10), 1.0, 2, 0)
    finally:
        LeanDecoder.__call__ = call
    assert model.lean_agrees is False and found.responses.tolist() == right.responses.tolist()


def test_responses_end_at_their_first_end_token_and_the_batch_when_all_have_ended() -> None:
    from rollout import generate, sampling_noise

    model = small()
    with torch.no_grad():
        model.lm_head.weight[2] += 2.0 * model.lm_head.weight.norm()  # ends soon, one way or the other
    ids, mask = prompts()
    roll = generate(model, ids, mask, sampling_noise(1, 1, 3, 40), 1.0, 2, 0)
    for row in range(3):
        tokens, length = roll.responses[row].tolist(), int(roll.mask[row].sum())
        if roll.ended[row]:
            assert tokens.index(2) == length - 1 and set(tokens[length:]) <= {0}
    assert not roll.ended.all() or roll.responses.shape[1] == int(roll.mask.sum(1).max()) < 40


def test_tokens_are_drawn_with_the_chance_they_have() -> None:
    from rollout import generate, sampling_noise

    model = small()
    ids, mask = torch.full((4000, 2), 5), torch.ones(4000, 2, dtype=torch.long)
    roll = generate(model, ids, mask, sampling_noise(0, 7, 4000, 1), 1.0, 2, 0)
    with torch.no_grad():
        chance = model(input_ids=ids[:1]).logits[0, -1].softmax(-1)
    share = torch.bincount(roll.responses[:, 0], minlength=32) / 4000
    assert (share - chance).abs().max() < 0.02


def test_noise_is_of_the_seed_and_the_step() -> None:
    from rollout import sampling_noise

    assert sampling_noise(1, 2, 3, 4).equal(sampling_noise(1, 2, 3, 4))
    assert not sampling_noise(1, 2, 3, 4).equal(sampling_noise(1, 3, 3, 4))
    assert not sampling_noise(1, 2, 3, 4).equal(sampling_noise(2, 2, 3, 4))
