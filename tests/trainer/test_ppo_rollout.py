"""Rollouts: log-probabilities are the model's own, and a response depends on its prompt and its noise alone."""

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


@pytest.mark.parametrize(("kind", "shared"), [("llama", 1), ("qwen2", 1), ("gpt2", 2)])
def test_log_probabilities_are_those_of_the_model_itself(kind, shared) -> None:
    from rollout import generate, sampling_noise

    model = small(kind, shared)
    ids, mask = prompts()
    for step in range(3):
        roll = generate(model, ids, mask, sampling_noise(0, step, 3, 12), 0.8, [2], pad=0)
        positions = (roll.attention.cumsum(1) - 1).clamp(min=0)
        with torch.no_grad():
            logits = model(input_ids=roll.tokens, attention_mask=roll.attention, position_ids=positions).logits[:, 3:-1] / 0.8
        expected = logits.log_softmax(-1).gather(-1, roll.responses[..., None])[..., 0] * roll.mask
        assert torch.allclose(roll.logprobs, expected, atol=2e-5)


def test_parts_of_a_batch_make_the_rollout_of_the_whole() -> None:
    from rollout import generate, joined, sampling_noise

    model = small()
    ids, mask = prompts()
    noise = sampling_noise(5, 1, 3, 14)
    whole = generate(model, ids, mask, noise, 1.0, [2, 7], 0)
    parts = [generate(model, ids[at:upto], mask[at:upto], noise[at:upto], 1.0, [2, 7], 0) for at, upto in ((0, 2), (2, 3))]
    found = joined(parts, 0)
    for name in ("tokens", "attention", "responses", "mask", "ended"):
        assert getattr(found, name).equal(getattr(whole, name)), name
    assert torch.allclose(found.logprobs, whole.logprobs, atol=1e-5)
    assert len({part.responses.shape[1] for part in parts}) == 2  # they were of different widths


def test_a_response_does_not_depend_on_the_batch_it_is_in() -> None:
    from rollout import generate, sampling_noise

    model = small()
    ids, mask = prompts()
    noise = sampling_noise(3, 1, 3, 10)
    whole = generate(model, ids, mask, noise, 1.0, [2], 0)
    for row in range(3):
        alone = generate(model, ids[row : row + 1], mask[row : row + 1], noise[row : row + 1], 1.0, [2], 0)
        length = int(whole.mask[row].sum())
        assert alone.responses[0, :length].tolist() == whole.responses[row, :length].tolist()


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_a_prompt_with_several_responses_is_read_once(kind) -> None:
    from rollout import generate, sampling_noise

    model = small(kind, 2 if kind == "gpt2" else 1)
    ids, mask = (one[torch.tensor([0, 0, 1, 2, 2, 2])] for one in prompts())
    noise, read = sampling_noise(3, 1, 6, 10), []
    model.register_forward_pre_hook(lambda _, args, named: read.append(tuple(named["input_ids"].shape)), with_kwargs=True)
    whole = generate(model, ids, mask, noise, 1.0, [2], 0)
    assert read[0] == (3, 4) and set(read[1:]) == {(6, 1)}
    assert len({tuple(row) for row in whole.responses[3:].tolist()}) == 3  # each has noise of its own
    for row in range(6):
        alone = generate(model, ids[row : row + 1], mask[row : row + 1], noise[row : row + 1], 1.0, [2], 0)
        length = int(whole.mask[row].sum())
        assert alone.responses[0, :length].tolist() == whole.responses[row, :length].tolist()
        assert torch.allclose(alone.logprobs[0, :length], whole.logprobs[row, :length], atol=1e-5)


def test_any_of_several_end_tokens_ends_a_response() -> None:
    from rollout import generate, sampling_noise

    model, ends = small(), [2, 9, 10, 11, 12]
    ids, mask = prompts()
    seen = set()
    for step in range(8):
        roll = generate(model, ids, mask, sampling_noise(1, step, 3, 12), 1.0, ends, 0)
        for tokens, real, ended in zip(roll.responses.tolist(), roll.mask.tolist(), roll.ended.tolist(), strict=True):
            length = sum(real)
            assert not set(tokens[: length - 1]) & set(ends) and set(tokens[length:]) <= {0}
            assert ended == (tokens[length - 1] in ends)
            seen |= {tokens[length - 1]} if ended else set()
    assert len(seen) > 2


def test_responses_end_at_their_first_end_token_and_the_batch_when_all_have_ended() -> None:
    from rollout import generate, sampling_noise

    model = small()
    with torch.no_grad():
        model.lm_head.weight[2] += 2.0 * model.lm_head.weight.norm()  # ends soon, one way or the other
    ids, mask = prompts()
    roll = generate(model, ids, mask, sampling_noise(1, 1, 3, 40), 1.0, [2], 0)
    for row in range(3):
        tokens, length = roll.responses[row].tolist(), int(roll.mask[row].sum())
        if roll.ended[row]:
            assert tokens.index(2) == length - 1 and set(tokens[length:]) <= {0}
    assert not roll.ended.all() or roll.responses.shape[1] == int(roll.mask.sum(1).max()) < 40


def test_tokens_are_drawn_with_the_chance_they_have() -> None:
    from rollout import generate, sampling_noise

    model = small()
    ids, mask = torch.full((4000, 2), 5), torch.ones(4000, 2, dtype=torch.long)
    roll = generate(model, ids, mask, sampling_noise(0, 7, 4000, 1), 1.0, [2], 0)
    with torch.no_grad():
        chance = model(input_ids=ids[:1]).logits[0, -1].softmax(-1)
    share = torch.bincount(roll.responses[:, 0], minlength=32) / 4000
    assert (share - chance).abs().max() < 0.02


def test_noise_is_of_the_seed_and_the_step() -> None:
    from rollout import sampling_noise

    assert sampling_noise(1, 2, 3, 4).equal(sampling_noise(1, 2, 3, 4))
    assert not sampling_noise(1, 2, 3, 4).equal(sampling_noise(1, 3, 3, 4))
    assert not sampling_noise(1, 2, 3, 4).equal(sampling_noise(2, 2, 3, 4))
