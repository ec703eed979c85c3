"""What watching must not do: change a weight, keep a tensor alive, or let a failure of its own reach the training."""

from __future__ import annotations

import gc
import json
import logging
import threading
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default")]
pytest.importorskip("trl")

STEPS = 2


def weights(trainer: Any) -> dict[str, Any]:
    return {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}


def train(kind: str, out: Path, callbacks: list[Any], steps: int = STEPS, **options: Any) -> Any:
    import trl_tiny

    make = trl_tiny.ppo_trainer if kind == "ppo" else lambda *args, **given: trl_tiny.group_trainer("GRPO", *args, **given)
    trainer = make(out, callbacks, steps, **options)
    trl_tiny.settle()
    trainer.train()
    return trainer


def callback(out: Path, **options: Any) -> Any:
    from rldk.integrations.trl import RLDKCallback

    return RLDKCallback(out, run_id="run", terminal=False, **options)


def steps_in(path: Path) -> list[int]:
    return [json.loads(line)["step"] for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The weights of trainings that nobody watches."""
    return {kind: weights(train(kind, tmp_path_factory.mktemp(kind), [])) for kind in ("ppo", "grpo")}


@pytest.mark.parametrize("kind", ["ppo", "grpo"])
def test_weights_are_bit_identical(kind: str, tmp_path: Path, bare: dict[str, dict[str, Any]]) -> None:
    import torch

    watched = weights(train(kind, tmp_path / "t", [callback(tmp_path / "rldk", samples=4, skip_nonfinite_steps=True)]))
    assert watched.keys() == bare[kind].keys()
    for name, tensor in watched.items():
        assert torch.equal(tensor, bare[kind][name]), name


PARTS = {
    "the probe of the rollout": "rldk.integrations.trl.events.rollout_sample",
    "the statistics of the rollout": "rldk.integrations.trl.events.reduce_rollouts",
    "the probe of samples": "rldk.integrations.trl.events.texts_of",
    "the probe of responses": "rldk.integrations.trl.events.responses_of_rollout",
    "the probe of lengths": "rldk.integrations.trl.events.pairs_of",
    "the probe of settings": "rldk.integrations.trl.session.describe_run",
    "the probe of gradients": "rldk.integrations.trl.probes.optimizer.combined_norm",
    "the probe of weights": "rldk.functional.weights.WeightSample.read",
    "the look for the trainer": "rldk.integrations.trl.session.find_trainer",
    "RLDKCallback.on_event": "rldk.integrations.trl.callbacks.RLDKCallback.on_event",
    "trackers": "rldk.judge.trackers.all_trackers.Trackers.take",
    "detector entropy_collapse": "rldk.detectors.policy.entropy_collapse.EntropyCollapse.find",
    "metrics": "rldk.monitor.outputs.metrics_csv.MetricsCsv.take",
    "alerts": "rldk.monitor.outputs.json_files.Alerts.start",
    "final report": "rldk.monitor.outputs.json_files.FinalReport.take",
    "checkpoint summary": "rldk.integrations.trl.checkpoints.CheckpointSummary.save",
    "tensorboard": "rldk.monitor.outputs.trackers.TensorBoardOutput.put",
    "the probe of resources": "rldk.monitor.resources.ResourceSampler.latest",
}
"""Each part of watching, and what of it is made to raise."""


def broken(*args: Any, **options: Any) -> Any:
    raise RuntimeError("made to fail")


@pytest.mark.parametrize("part", PARTS)
def test_a_failing_part_leaves_training_and_log_unharmed(
    part: str, tmp_path: Path, bare: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import torch

    monkeypatch.setattr(PARTS[part], broken)
    with caplog.at_level(logging.WARNING, "rldk"):
        watched = callback(tmp_path / "rldk", report_to="tensorboard")
        trainer = train("ppo", tmp_path / "t", [watched], save_strategy="steps", save_steps=1)
    for name, tensor in weights(trainer).items():
        assert torch.equal(tensor, bare["ppo"][name]), name
    assert steps_in(tmp_path / "rldk" / "run_events.jsonl") == list(range(1, STEPS + 1))
    said = [record for record in caplog.records if record.name == "rldk" and record.levelno >= logging.WARNING]
    assert len(said) == 1, [record.getMessage() for record in said]  # once, with its traceback
    assert "made to fail" in said[0].getMessage() and said[0].exc_info is not None
    assert not trainer.optimizer.optimizer._optimizer_step_pre_hooks
    assert not [one for one in threading.enumerate() if one.name == "rldk-resources"]
    if part != "final report":
        assert (tmp_path / "rldk" / "run_final_report.json").exists()


def test_strict_raises_what_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PARTS["the probe of the rollout"], broken)
    with pytest.raises(RuntimeError, match="made to fail"):
        train("ppo", tmp_path / "t", [callback(tmp_path / "rldk", strict=True)])


def test_no_hook_and_no_tensor_is_left_behind(tmp_path: Path) -> None:
    import torch

    watched = callback(tmp_path / "rldk")
    trainer = train("ppo", tmp_path / "t", [watched], steps=2)
    optimizer = trainer.optimizer.optimizer
    assert not optimizer._optimizer_step_pre_hooks
    shape = (16, 12)  # responses of a rollout by their length
    trainer = optimizer = None
    gc.unfreeze()  # the trainer was there when garbage was settled
    gc.collect()
    held = [one for one in gc.get_objects() if issubclass(type(one), torch.Tensor) and tuple(one.shape) == shape]
    gc.freeze()
    assert not held
