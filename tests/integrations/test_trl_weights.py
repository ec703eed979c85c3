"""The change of the weights in real trainings: what moves, what does not, and what was loaded from elsewhere."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default")]
pytest.importorskip("trl")


def watched(folder: Path) -> Any:
    from rldk.integrations.trl import RLDKCallback

    return RLDKCallback(folder, run_id="run", terminal=False, enable_resource_monitoring=False, strict=True)


def changes(folder: Path, name: str = "weight_change") -> list[float]:
    return [json.loads(line)["metrics"].get(name) for line in (folder / "run_events.jsonl").read_text().splitlines()]


def oracle(every: list[dict[str, Any]]) -> list[float]:
    """The relative change of all matrices from one state to the next, the slow way."""
    found = []
    for before, after in pairwise(every):
        moved = sum(float((after[name].double() - before[name].double()).pow(2).sum()) for name in before)
        found.append((moved / sum(float(one.double().pow(2).sum()) for one in before.values())) ** 0.5)
    return found


def state_keeper(policy: Any) -> Any:
    """A callback that keeps the policy's matrices at the start and after every update."""
    from transformers import TrainerCallback

    class Keeper(TrainerCallback):
        states: list[dict[str, Any]]

        def on_train_begin(self, *args: Any, **options: Any) -> None:
            self.states = [self.now()]

        def on_step_end(self, *args: Any, **options: Any) -> None:
            self.states.append(self.now())

        def now(self) -> dict[str, Any]:
            named = policy().named_parameters()
            return {name: one.detach().clone() for name, one in named if one.ndim > 1 and "embed" not in name}

    return Keeper()


def test_ppo_tells_how_far_policy_and_value_model_move_in_each_update(tmp_path: Path) -> None:
    import trl_tiny

    keeper = state_keeper(lambda: trainer.model.policy)
    trainer = trl_tiny.ppo_trainer(tmp_path / "t", [watched(tmp_path / "rldk"), keeper], 3)
    trainer.train()
    found = changes(tmp_path / "rldk")
    assert found == pytest.approx(oracle(keeper.states), rel=0.5)  # a sample of four of fifteen matrices
    assert all(change > 1e-4 for change in changes(tmp_path / "rldk", "weight_change_value"))


def test_a_frozen_policy_reads_exactly_zero_while_the_value_model_moves(tmp_path: Path) -> None:
    import trl_tiny

    trainer = trl_tiny.ppo_trainer(tmp_path / "t", [watched(tmp_path / "rldk")], 3)
    trainer.model.policy.requires_grad_(False)
    trainer.train()
    assert changes(tmp_path / "rldk") == [0.0, 0.0, 0.0]
    assert all(change > 0 for change in changes(tmp_path / "rldk", "weight_change_value"))


def test_other_weights_that_were_loaded_show_as_a_jump(tmp_path: Path) -> None:
    import trl_tiny
    from transformers import TrainerCallback

    class Loads(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **options: Any) -> None:
            if state.global_step == 3:
                model.policy.load_state_dict(trl_tiny.policy(7).state_dict())

    trl_tiny.ppo_trainer(tmp_path / "t", [watched(tmp_path / "rldk"), Loads()], 5, learning_rate=3e-4).train()
    found = changes(tmp_path / "rldk")
    assert found[3] > 1.0  # two sets of random weights are at right angles
    assert all(change < 0.1 for number, change in enumerate(found) if number != 3)


@pytest.mark.parametrize("kind", ["GRPO", "RLOO", "DPO"])
def test_it_is_one_update_whatever_is_accumulated_or_how_rarely_is_logged(kind: str, tmp_path: Path) -> None:
    import trl_tiny

    def train(name: str, **options: Any) -> tuple[list[float], list[float]]:
        keeper = state_keeper(lambda: trainer.accelerator.unwrap_model(trainer.model))
        callbacks, out = [watched(tmp_path / name), keeper], tmp_path / f"{name}_t"
        if kind == "DPO":
            trainer = trl_tiny.other_trainer(kind, out, callbacks, 4, **options)
        else:
            trainer = trl_tiny.group_trainer(kind, out, callbacks, 4, **options)
        trainer.train()
        return changes(tmp_path / name), oracle(keeper.states)

    found, moved = train("each", per_device_train_batch_size=8, gradient_accumulation_steps=2)
    assert len(found) == 4 and found == pytest.approx(moved, rel=0.5)
    rarely, _ = train("rarely", per_device_train_batch_size=8, gradient_accumulation_steps=2, logging_steps=2)
    assert rarely == pytest.approx([(found[0] + found[1]) / 2, (found[2] + found[3]) / 2], rel=1e-3)


def test_a_learning_rate_of_zero_moves_nothing(tmp_path: Path) -> None:
    import trl_tiny

    trl_tiny.group_trainer("GRPO", tmp_path / "t", [watched(tmp_path / "rldk")], 3, learning_rate=0.0).train()
    assert changes(tmp_path / "rldk") == [0.0, 0.0, 0.0]
