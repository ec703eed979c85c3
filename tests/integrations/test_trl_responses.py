"""What the policy writes in real trainings: how many responses differ, and how much they repeat themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default")]
pytest.importorskip("trl")

END = 1
"""The end token of the tiny world."""
NAMES = ("distinct_responses_frac", "repetition_frac")


def callback(folder: Path) -> Any:
    from rldk.integrations.trl import RLDKCallback

    return RLDKCallback(folder, run_id="run", terminal=False, enable_resource_monitoring=False, strict=True)


def shares(folder: Path) -> list[list[float | None]]:
    lines = (folder / "run_events.jsonl").read_text().splitlines()
    return [[json.loads(line)["metrics"].get(name) for name in NAMES] for line in lines]


def plain(responses: list[list[int]]) -> list[float | None]:
    """The two metrics of at most 32 responses, by the plainest means."""
    repeated = []
    for response in responses:
        pairs = [tuple(response[place : place + 2]) for place in range(len(response) - 1)]
        if len(response) >= 4:
            repeated.append(1.0 - len(set(pairs)) / len(pairs))
    return [len(set(map(tuple, responses))) / len(responses), sum(repeated) / len(repeated) if repeated else None]


def until_the_end(response: list[int]) -> list[int]:
    return response[: response.index(END) + 1] if END in response else response


def test_ppo_is_measured_by_what_it_generated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import trl_tiny

    from rldk.integrations.trl.ppo_trainer import find_ppo

    module = __import__(find_ppo()[0].__module__, fromlist=["batch_generation"])
    generate, seen = module.batch_generation, []

    def noted(model: Any, queries: Any, *rest: Any, **options: Any) -> Any:
        made = generate(model, queries, *rest, **options)
        seen.append([until_the_end(row[queries.shape[1] :]) for row in made[0].tolist()])
        return made

    monkeypatch.setattr(module, "batch_generation", noted)
    trl_tiny.ppo_trainer(tmp_path / "t", [callback(tmp_path / "rldk")], 4).train()
    assert len({len(response) for response in seen[0]}) > 1  # some end before others
    assert shares(tmp_path / "rldk") == [pytest.approx(plain(responses)) for responses in seen]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("GRPO", {}),
        ("RLOO", {}),
        ("GRPO", {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 3}),
        ("GRPO", {"mask_truncated_completions": True}),
    ],
)
def test_all_groups_are_measured_together(kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    import trl_tiny

    seen: list[list[list[int]]] = []

    def reward(completions: list[Any], completion_ids: list[list[int]], **_: Any) -> list[float]:
        seen.append([list(ids) for ids in completion_ids])
        return list(trl_tiny.good_words(completions))

    trl_tiny.group_trainer(kind, tmp_path / "t", [callback(tmp_path / "rldk")], 3, reward=reward, **options).train()
    assert len(seen) == 3
    assert shares(tmp_path / "rldk") == [pytest.approx(plain(responses)) for responses in seen]


def test_a_policy_that_comes_to_write_one_text_is_told_of(tmp_path: Path) -> None:
    import torch
    import trl_tiny
    from transformers import TrainerCallback

    class OneWord(torch.nn.Linear):
        def forward(self, hidden: Any) -> Any:
            return 0.0 * super().forward(hidden) + 1e4 * (torch.arange(self.out_features) == 5)

    class Collapse(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            if state.global_step == 8:
                given["model"].lm_head.__class__ = OneWord

    callbacks = [callback(tmp_path / "rldk"), Collapse()]
    trl_tiny.group_trainer("GRPO", tmp_path / "t", callbacks, 16, learning_rate=0.0).train()
    found = shares(tmp_path / "rldk")
    assert min(varied for varied, _ in found[:8] if varied is not None) > 0.5
    assert found[8:] == [pytest.approx([1 / 16, 1 - 1 / 11])] * 8
    alerts = json.loads((tmp_path / "rldk" / "run_alerts.json").read_text())
    assert [alert["step"] for alert in alerts if alert["type"] == "response_collapse"] == [15]


@pytest.mark.parametrize("kind", ["DPO", "SFT"])
def test_a_trainer_that_generates_nothing_has_neither(kind: str, tmp_path: Path) -> None:
    import trl_tiny

    trl_tiny.other_trainer(kind, tmp_path / "t", [callback(tmp_path / "rldk")], 2).train()
    assert shares(tmp_path / "rldk") == [[None, None]] * 2
