"""What the probes find in real trainings, beside what was seen there by another way."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default")]
pytest.importorskip("trl")

ISSUE = """
policy_grad_norm value_grad_norm grad_norm advantage_mean advantage_std advantage_skewness advantage_kurtosis advantage_min
advantage_p5 advantage_p25 advantage_median advantage_p75 advantage_p95 advantage_max value_mean value_std explained_variance
reward_std reward_min reward_max rollout_length_mean rollout_length_std eos_frac kl_std ratio_mean ratio_std ratio_min ratio_max
kl_coef clip_range clip_range_value batch_size policy_total_params policy_trainable_params value_total_params
value_trainable_params vocab_size tokenizer_vocab_size dataset_size policy_lr value_lr lr
""".split()  # noqa: SIM905  a list of this length reads better as text
"""What a PPO event must hold, whoever it comes from."""


def events(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line)["metrics"] for line in (folder / "run_events.jsonl").read_text().splitlines()]


def callback(folder: Path, **options: Any) -> Any:
    from rldk.integrations.trl import RLDKCallback

    return RLDKCallback(folder, run_id="run", terminal=False, enable_resource_monitoring=False, strict=True, **options)


@pytest.fixture(scope="module")
def ppo(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Four updates, with what TRL hands to its whitening taken down: the raw advantages of each update."""
    import trl_tiny

    from rldk.integrations.trl.ppo_trainer import find_ppo

    out, raw = tmp_path_factory.mktemp("ppo"), []
    module = __import__(find_ppo()[0].__module__, fromlist=["masked_whiten"])
    whiten = module.masked_whiten

    def noted(values: Any, mask: Any, *rest: Any, **options: Any) -> Any:
        raw.append(values[mask].double().numpy().copy())
        return whiten(values, mask, *rest, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "masked_whiten", noted)
        trl_tiny.ppo_trainer(out / "t", [callback(out / "rldk")], 4).train()
    return {"events": events(out / "rldk"), "raw": raw}


def test_a_ppo_event_holds_all_that_trl_does_not_log(ppo: dict[str, Any]) -> None:
    for event in ppo["events"]:
        assert [name for name in ISSUE if name not in event] == []


def test_advantages_are_those_before_whitening_and_say_so(ppo: dict[str, Any]) -> None:
    for event, raw in zip(ppo["events"], ppo["raw"], strict=True):
        assert event["advantage_mean"] == pytest.approx(raw.mean(), abs=1e-6)
        assert event["advantage_std"] == pytest.approx(raw.std(ddof=1), rel=1e-4)
        assert (event["advantage_normalized"], event["advantage_raw"]) == (1.0, 1.0)  # TRL whitens them for use


def test_the_ratio_is_that_of_tokens(ppo: dict[str, Any], tmp_path: Path) -> None:
    import trl_tiny

    for event in ppo["events"]:
        assert 0.0 < event["ratio_min"] < 1.0 < event["ratio_max"]
        assert 0.0 < event["ratio_std"] < event["ratio_max"] - event["ratio_min"]
    trl_tiny.ppo_trainer(tmp_path / "t", [callback(tmp_path / "rldk")], 2, num_ppo_epochs=1).train()
    for event in events(tmp_path / "rldk"):  # with one epoch the policy is still the one that wrote the responses
        assert (event["ratio_min"], event["ratio_max"], event["ratio_std"]) == pytest.approx((1.0, 1.0, 0.0), abs=1e-4)


@pytest.mark.parametrize("kind", ["GRPO", "RLOO"])
def test_lengths_of_completions_have_a_spread(kind: str, tmp_path: Path) -> None:
    import trl_tiny

    seen: list[list[int]] = []

    def reward(completions: list[Any], completion_ids: list[list[int]], **_: Any) -> list[float]:
        seen.append([len(ids) for ids in completion_ids])
        return list(trl_tiny.good_words(completions))

    trl_tiny.group_trainer(kind, tmp_path / "t", [callback(tmp_path / "rldk")], 3, reward=reward).train()
    found = events(tmp_path / "rldk")
    assert len(found) == 3 and len(seen) == 3
    for event, lengths in zip(found, seen, strict=True):
        assert event["rollout_length_std"] == pytest.approx(statistics.stdev(lengths))
        assert event["rollout_length_mean"] == pytest.approx(statistics.mean(lengths))


def test_a_coefficient_that_the_trainer_changes_is_logged_as_it_is(tmp_path: Path) -> None:
    import trl_faults
    import trl_tiny

    lost = trl_faults.PenaltyLost(2)
    lost.trainer = trl_tiny.group_trainer("GRPO", tmp_path / "t", [callback(tmp_path / "rldk"), lost], 3, beta=0.1)
    lost.trainer.train()
    found = events(tmp_path / "rldk")
    assert [event["kl_coef"] for event in found] == [0.1, 0.0, 0.0]
    assert ["kl_mean" in event for event in found] == [True, True, False]


@pytest.mark.parametrize(("kind", "words"), [("ppo", "nothing keeps"), ("grpo", "does not compute the KL")])
def test_no_penalty_from_the_start_is_noted_and_no_alert(kind: str, words: str, tmp_path: Path, capsys: Any) -> None:
    import trl_tiny

    from rldk.integrations.trl import RLDKCallback

    watched = RLDKCallback(tmp_path / "rldk", run_id="run", enable_resource_monitoring=False)
    if kind == "ppo":
        trainer = trl_tiny.ppo_trainer(tmp_path / "t", [watched], 3, kl_coef=0.0)
    else:
        trainer = trl_tiny.group_trainer("GRPO", tmp_path / "t", [watched], 3, beta=0.0)
    trainer.train()
    lines = [json.loads(line) for line in (tmp_path / "rldk" / "run_events.jsonl").read_text().splitlines()]
    note = next(note for note in lines[0]["notes"] if words in note)  # beside what detectors note of the same
    assert note in capsys.readouterr().err.replace("\n", " ")
    assert not any(line.get("notes") for line in lines[1:])
    assert json.loads((tmp_path / "rldk" / "run_alerts.json").read_text()) == []


@pytest.mark.parametrize("where", ["loss", "on the way back"])
def test_a_gradient_that_is_not_finite_is_seen_wherever_it_comes_from(where: str) -> None:
    import torch
    from torch import nn

    from rldk.integrations.trl.probes.optimizer import GradientProbe

    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4, bias=False), nn.LayerNorm(4)) for _ in range(5)))
    said: list[str] = []
    probe = GradientProbe(model, norms=False, on_nonfinite=said.append)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    probe.attach(optimizer)
    for poisoned in (False, True):
        optimizer.zero_grad()
        if poisoned and where != "loss":
            model[2].register_full_backward_hook(lambda module, given, out: (given[0] * float("nan"),))
        (model(torch.ones(2, 4)).pow(2).mean() * (float("nan") if poisoned and where == "loss" else 1.0)).backward()
        optimizer.step()
        assert len(said) == poisoned
    probe.detach()
    assert "0.0.weight first" in said[0] and probe.read()["nonfinite_count"] == 1.0
