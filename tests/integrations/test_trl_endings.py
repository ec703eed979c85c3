"""The probe of endings in real trainings: what the policy would end, although nothing ends."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default")]
torch = pytest.importorskip("torch")
pytest.importorskip("trl")


def watched(folder: Path) -> Any:
    from rldk.integrations.trl import RLDKCallback

    return RLDKCallback(folder, run_id="run", terminal=False, enable_resource_monitoring=False, strict=True)


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line)["metrics"] for line in (folder / "run_events.jsonl").read_text().splitlines()]


def findings(folder: Path) -> set[tuple[str, str]]:
    import rldk

    return {(anomaly.clause, anomaly.severity) for anomaly in rldk.scan(folder / "run_events.jsonl")[0].anomalies}


def trained(kind: str, folder: Path, blocked: bool, updates: int = 10) -> Any:
    """A short training; where `blocked`, its generation never samples the end token."""
    import trl_tiny

    made: Any
    if kind == "PPO":
        made = trl_tiny.ppo_trainer(folder / "t", [watched(folder / "rldk")], updates, response_length=40, num_ppo_epochs=1)
        generation = made.model.policy.generation_config
    else:
        made = trl_tiny.group_trainer(kind, folder / "t", [watched(folder / "rldk")], updates, max_completion_length=40)
        generation = made.generation_config
    if blocked and kind == "PPO":
        own = made.model.policy.generate
        made.model.policy.generate = lambda *args, **options: own(*args, **{**options, "suppress_tokens": [1]})
    elif blocked:
        generation.suppress_tokens = [1]
    made.train()
    return made


@pytest.mark.parametrize("kind", ["PPO", "GRPO"])
def test_responses_that_cannot_end_are_critical_and_those_that_may_are_not(kind: str, tmp_path: Path) -> None:
    trained(kind, tmp_path / "blocked", blocked=True)
    trained(kind, tmp_path / "free", blocked=False)
    expected = [row["eos_expected"] for row in events(tmp_path / "blocked/rldk") if "eos_expected" in row]
    assert len(expected) == 8  # then the hook is gone
    assert expected[0] == pytest.approx(40 / 22, rel=0.3)  # an untrained model gives each of its 22 words the same chance
    assert ("blocked", "critical") in findings(tmp_path / "blocked/rldk")
    assert not any(clause == "blocked" for clause, _ in findings(tmp_path / "free/rldk"))


def test_it_is_the_sum_of_the_chances_over_a_response_and_leaves_the_model_as_it_was() -> None:
    from rldk.integrations.trl.probes.ending import EndingProbe
    from rldk.monitor import Guard

    torch.manual_seed(0)
    head = torch.nn.Linear(8, 11)
    policy = SimpleNamespace(get_output_embeddings=lambda: head)
    probe = EndingProbe(policy, [3, 5], limit=6, guard=Guard(strict=True))
    hidden = torch.randn(3, 10, 8)
    with torch.no_grad():
        head(hidden)  # generation
    assert probe.read() == {}
    logits = head(hidden)
    wanted = logits.softmax(-1)[:, -6:, [3, 5]].sum((1, 2)).mean()
    assert probe.read()["eos_expected"] == pytest.approx(wanted.item(), rel=1e-5)
    for _ in range(7):
        head(hidden)
        probe.read()
    assert not head._forward_hooks
