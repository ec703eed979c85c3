"""What the first event of a real training says of its settings, models and prompts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default")]
pytest.importorskip("trl")


def train(kind: str, folder: Path, change: Any = lambda trainer: None, steps: int = 1, **options: Any) -> list[dict[str, float]]:
    import trl_tiny

    from rldk.integrations.trl import RLDKCallback

    watched = RLDKCallback(folder / "rldk", run_id="run", terminal=False, enable_resource_monitoring=False, strict=True)
    if kind == "ppo":
        trainer = trl_tiny.ppo_trainer(folder / "t", [watched], steps, **options)
    elif kind == "DPO":
        trainer = trl_tiny.other_trainer(kind, folder / "t", [watched], steps, **options)
    else:
        trainer = trl_tiny.group_trainer(kind, folder / "t", [watched], steps, **options)
    change(trainer)
    trainer.train()
    return [json.loads(line)["metrics"] for line in (folder / "rldk" / "run_events.jsonl").read_text().splitlines()]


def pick(event: dict[str, float], *names: str) -> list[float | None]:
    return [event.get(name) for name in names]


def test_the_settings_of_ppo(tmp_path: Path) -> None:
    (event,) = train("ppo", tmp_path, kl_coef=-0.2, temperature=0.7)
    assert pick(event, "max_response_length", "num_iterations", "num_generations") == [12.0, 4.0, None]
    assert pick(event, "kl_coef", "temperature") == [-0.2, pytest.approx(0.7)]  # a negative one as it is
    assert pick(event, "dropout_active", "reference_is_policy", "distinct_prompts_frac") == [0.0, 0.0, 1.0]
    assert event["policy_trainable_params"] == event["policy_total_params"]


@pytest.mark.parametrize("kind", ["GRPO", "RLOO"])
def test_the_settings_of_groups(kind: str, tmp_path: Path) -> None:
    (event,) = train(kind, tmp_path, num_iterations=2, top_p=0.5, repetition_penalty=1.1)
    names = ("max_response_length", "num_iterations", "num_generations", "dropout_active", "reference_is_policy")
    assert pick(event, *names) == [12.0, 2.0, 4.0, 0.0, 0.0]
    assert pick(event, "top_p", "repetition_penalty") == [0.5, 1.1]


def test_dpo_has_a_reference_and_writes_no_responses(tmp_path: Path) -> None:
    (event,) = train("DPO", tmp_path)
    names = ("max_response_length", "dropout_active", "reference_is_policy", "distinct_prompts_frac", "distinct_prompts")
    assert pick(event, *names) == [None, 0.0, 0.0, 1.0, None]


def test_without_a_penalty_grpo_has_no_reference_to_tell_of(tmp_path: Path) -> None:
    (event,) = train("GRPO", tmp_path, beta=0.0)
    assert "reference_is_policy" not in event


def same_reference(trainer: Any) -> None:
    trainer.ref_model = trainer.model.policy


def shared_weights(trainer: Any) -> None:
    trainer.ref_model.model.layers[0] = trainer.model.policy.model.layers[0]


@pytest.mark.parametrize("change", [same_reference, shared_weights])
def test_a_reference_that_is_trained_along_is_told(change: Any, tmp_path: Path) -> None:
    (event,) = train("ppo", tmp_path, change)
    assert event["reference_is_policy"] == 1.0


def dropout_in_attention(trainer: Any) -> None:
    for layer in trainer.model.policy.model.layers:
        layer.self_attn.attention_dropout = 0.3


def dropout_in_a_hook(trainer: Any) -> None:
    from torch.nn.functional import dropout

    for layer in trainer.model.policy.model.layers:
        layer.mlp.register_forward_hook(lambda owner, _, out: dropout(out, 0.3, owner.training))


@pytest.mark.parametrize("change", [dropout_in_attention, dropout_in_a_hook])
def test_dropout_is_told_wherever_it_is(change: Any, tmp_path: Path) -> None:
    (event,) = train("ppo", tmp_path, change)
    assert event["dropout_active"] == 1.0


def test_a_data_set_of_two_prompts_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import trl_tiny

    whole = trl_tiny.prompts
    monkeypatch.setattr(trl_tiny, "prompts", lambda *given, **options: whole(*given, **options).select([0, 1] * 32))
    for kind in ("ppo", "GRPO"):
        events = train(kind, tmp_path / kind, steps=2)
        assert [event["distinct_prompts_frac"] for event in events] == [2 / 64, 2 / 64]
        assert [event["distinct_prompts"] for event in events] == [2.0, 2.0]


def test_prompts_are_counted_over_the_run(tmp_path: Path) -> None:
    assert [event["distinct_prompts"] for event in train("ppo", tmp_path / "p", steps=2)] == [16.0, 32.0]
    assert [event["distinct_prompts"] for event in train("GRPO", tmp_path / "g", steps=2)] == [4.0, 8.0]
