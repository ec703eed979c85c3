"""The losses of the stages against plain loops."""

from __future__ import annotations

import math
from typing import Any

import pytest

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def models() -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=40, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, pad_token_id=0
    )
    return LlamaForCausalLM(config).eval(), LlamaForCausalLM(config).eval()


def batch(rows: list[tuple[list[int], int]]) -> Any:
    """Rows of tokens, of which all but the first so many are learnt."""
    from data_sets import right_pad

    tokens, mask = right_pad([row for row, _ in rows], 0)
    labels, _ = right_pad([[-100] * skip + row[skip:] for row, skip in rows], -100)
    return {"input_ids": tokens, "attention_mask": mask, "labels": labels}


ROWS = [([5, 6, 7, 8, 9, 10], 2), ([5, 6, 11], 2), ([5, 6, 12, 13], 2), ([5, 6, 14, 15, 16], 2)]


def logp_of(model: Any, row: list[int], skip: int) -> list[float]:
    """Log-probabilities of the tokens after the first `skip`, one at a time and without a batch."""
    import torch

    found = []
    for place in range(skip, len(row)):
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([row[:place]])).logits[0, -1].double().tolist()
        whole = math.log(sum(math.exp(value - max(logits)) for value in logits)) + max(logits)
        found.append(logits[row[place]] - whole)
    return found


def test_the_loss_of_language_modelling_is_the_mean_over_learnt_tokens(models: Any) -> None:
    from stage_loop import LanguageModelling

    objective, made = LanguageModelling(), batch(ROWS)
    expected = [value for row, skip in ROWS for value in logp_of(models[0], row, skip)]
    found = objective(models[0], made)
    assert objective.units(made) == len(expected) == 10
    assert found["loss"].item() == pytest.approx(-sum(expected), rel=1e-4)
    assert 0 < float(found["entropy"]) / 10 <= math.log(40)
    assert objective.metrics({"loss": 2.0})["perplexity"] == pytest.approx(math.exp(2.0))
    assert objective.metrics({"loss": 5000.0})["perplexity"] < math.inf
    assert math.isnan(objective.metrics({"loss": math.nan})["perplexity"])


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_loss_of_dpo_against_a_plain_loop(models: Any, smoothing: float) -> None:
    from train_dpo import Preference

    policy, reference = models
    objective, made = Preference(reference, 0.3, smoothing), batch(ROWS)
    found = {key: value.item() for key, value in objective(policy, made).items()}
    loss = margins = right = 0.0
    for (chosen, skip), (rejected, other) in ((ROWS[0], ROWS[2]), (ROWS[1], ROWS[3])):
        good = 0.3 * (sum(logp_of(policy, chosen, skip)) - sum(logp_of(reference, chosen, skip)))
        bad = 0.3 * (sum(logp_of(policy, rejected, other)) - sum(logp_of(reference, rejected, other)))
        chance = 1 / (1 + math.exp(bad - good))
        loss -= (1 - smoothing) * math.log(chance) + smoothing * math.log(1 - chance)
        margins += good - bad
        right += good > bad
    assert objective.units(made) == 2
    assert found["loss"] == pytest.approx(loss, rel=1e-4)
    assert found["rewards/margins"] == pytest.approx(margins, abs=1e-4)
    assert found["rewards/chosen"] - found["rewards/rejected"] == pytest.approx(margins, abs=1e-4)
    assert found["rewards/accuracies"] == right
    assert found["logps/chosen"] == pytest.approx(sum(sum(logp_of(policy, *row)) for row in ROWS[:2]), rel=1e-4)


def test_the_reference_of_dpo_gets_no_gradient(models: Any) -> None:
    from train_dpo import Preference

    policy, reference = models
    Preference(reference, 0.1, 0.0)(policy, batch(ROWS))["loss"].backward()
    assert all(parameter.grad is None for parameter in reference.parameters())
    assert any(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in policy.parameters())


def test_the_loss_of_the_reward_model_against_a_plain_loop(models: Any) -> None:
    import torch
    from transformers import LlamaForSequenceClassification

    from train_reward import Comparison

    torch.manual_seed(1)
    config = models[0].config.__class__(**{**models[0].config.to_dict(), "num_labels": 1})
    judge, made = LlamaForSequenceClassification(config).eval(), batch(ROWS)
    with torch.no_grad():
        scores = [judge(input_ids=torch.tensor([row])).logits.item() for row, _ in ROWS]
        found = {key: value.item() for key, value in Comparison(0.05)(judge, made).items()}
    pairs = [(scores[0], scores[2]), (scores[1], scores[3])]
    expected = sum(math.log(1 + math.exp(bad - good)) + 0.05 * (good + bad) ** 2 for good, bad in pairs)
    assert Comparison(0.05).units(made) == 2
    assert found["loss"] == pytest.approx(expected, rel=1e-4)
    assert found["rewards/margins"] == pytest.approx(sum(good - bad for good, bad in pairs), rel=1e-4)
    assert found["rewards/accuracies"] == sum(good > bad for good, bad in pairs)
