"""Several minibatches and accumulation steps together: means over filled slots only, and norms of all optimizer steps."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default")]
pytest.importorskip("trl")
UPDATES = 5


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Two minibatches of two accumulation steps; what TRL logs, and the gradients before each optimizer step."""
    import torch
    import trl_tiny
    from transformers import TrainerCallback

    from rldk.integrations.trl import CheckpointMonitor, RLDKCallback

    out, logged, norms = tmp_path_factory.mktemp("minibatches"), [], [[]]

    class Seen(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, optimizer: Any = None, model: Any = None, **_: Any) -> None:
            held = optimizer.optimizer if hasattr(optimizer, "optimizer") else optimizer

            def before(*_: Any) -> None:
                each = [
                    torch.cat([one.grad.flatten() for one in part.parameters() if one.grad is not None]).double().norm().item()
                    for part in (model.policy, model.value_model)
                ]
                norms[-1].append(each)

            held.register_step_pre_hook(before)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            logged.append(dict(logs))
            norms.append([])

    callbacks = [
        Seen(), RLDKCallback(out, run_id="run", terminal=False, enable_resource_monitoring=False, strict=True),
        CheckpointMonitor(out, strict=True),
    ]  # fmt: skip
    trainer = trl_tiny.ppo_trainer(
        out / "t", callbacks, 2 * UPDATES, per_device_train_batch_size=8, gradient_accumulation_steps=2, num_mini_batches=2,
        num_ppo_epochs=3, save_strategy="steps", save_steps=2, size={"layers": 2},
    )  # fmt: skip
    trl_tiny.settle()
    trainer.train()
    events = [json.loads(line) for line in (out / "run_events.jsonl").read_text().splitlines()]
    alerts = json.loads((out / "run_alerts.json").read_text())
    return {"events": events, "logged": logged, "norms": norms[:-1], "alerts": alerts, "monitor": callbacks[-1], "out": out}


def test_means_are_those_of_the_slots_that_are_filled(run) -> None:
    assert len(run["events"]) == len(run["logged"]) == UPDATES
    for event, logs in zip(run["events"], run["logged"], strict=True):
        metrics = event["metrics"]
        assert logs["val/ratio"] == pytest.approx(0.5, abs=0.05)  # TRL: half of its slots are empty
        assert metrics["ratio_mean"] == pytest.approx(2 * logs["val/ratio"])
        assert metrics["ratio_min"] <= metrics["ratio_mean"] <= metrics["ratio_max"]
        for name, key in (("entropy_mean", "policy/entropy_avg"), ("clip_frac", "policy/clipfrac_avg"),
                          ("policy_loss", "loss/policy_avg"), ("value_loss", "loss/value_avg"),
                          ("kl_update", "policy/approxkl_avg"), ("value_clip_frac", "val/clipfrac_avg")):  # fmt: skip
            assert metrics[name] == pytest.approx(2 * logs[key])
        assert metrics["reward_mean"] == logs["objective/scores"] and metrics["kl_mean"] == logs["objective/kl"]
    assert "50 %" in " ".join(run["events"][0]["notes"])
    assert not [one for one in run["alerts"] if one["type"] == "ratio_explosion"]


def test_norms_are_mean_and_maximum_over_all_optimizer_steps(run) -> None:
    assert {len(steps) for steps in run["norms"]} == {3}  # an optimizer step needs both micro-batches
    for event, steps in zip(run["events"], run["norms"], strict=True):
        for place, name in enumerate(("policy_grad_norm", "value_grad_norm")):
            own = [step[place] for step in steps]
            assert event["metrics"][name] == pytest.approx(sum(own) / 3, rel=1e-4)
            assert event["metrics"][f"{name}_max"] == pytest.approx(max(own), rel=1e-4)
        whole = [(policy**2 + value**2) ** 0.5 for policy, value in steps]
        assert event["metrics"]["grad_norm_max"] == pytest.approx(max(whole), rel=1e-4)


def test_a_checkpoint_says_how_gradients_flow_and_what_would_save_memory(run) -> None:
    flow, memory = run["monitor"].get_gradient_flow(), run["monitor"].get_memory_analysis()
    layers = [name.removeprefix("policy.") for name in flow["layers"] if name.startswith("policy.")]
    assert {"model.layers.0", "model.layers.1", "model.embed_tokens", "lm_head"} <= set(layers)
    last = run["norms"][-1][-1]  # the last optimizer step before the last checkpoint
    assert flow["gradient_norm"] == pytest.approx((last[0] ** 2 + last[1] ** 2) ** 0.5, rel=1e-4)
    assert flow["weakest_gradient_norm"] == min(flow["layers"].values()) and flow["starved"] == []
    record = run["monitor"].checkpoint_metrics
    assert record.step == UPDATES and record.strongest_gradient_norm == max(flow["layers"].values())
    sizes = {name: size * 1e9 for name, size in memory["memory_gb"].items()}
    assert sizes["policy_weights"] == 4 * run["events"][0]["metrics"]["policy_total_params"]
    assert sizes["optimizer_state"] == pytest.approx(2 * sizes["gradients"], rel=0.01)  # the two moments of Adam
    assert len(memory["suggestions"]) >= 4 and "LoRA" in memory["suggestions"][0] == record.memory_advice
    assert record.training_memory_gb == pytest.approx(sum(memory["memory_gb"].values()))


@pytest.mark.parametrize(("slots", "minibatch", "share"), [(1, 4, 1.0), (2, 16, 1.0), (2, 8, 0.5), (4, 8, 0.25), (3, 12, 2 / 3)])
def test_the_share_of_filled_slots(slots: int, minibatch: int, share: float) -> None:
    from rldk.integrations.trl.probes.rollout import filled_share

    given = {"gradient_accumulation_steps": slots, "local_mini_batch_size": minibatch, "per_device_train_batch_size": 8}
    assert filled_share(SimpleNamespace(**given)) == pytest.approx(share)
    assert filled_share(SimpleNamespace()) == 1.0


def test_an_update_with_fewer_steps_than_the_one_before_has_its_norms() -> None:
    import torch

    from rldk.integrations.trl.probes.optimizer import GradientProbe

    model = torch.nn.Linear(2, 1, bias=False)
    probe, optimizer = GradientProbe(model), torch.optim.SGD(model.parameters(), lr=0.0)
    probe.attach(optimizer)
    for count in (4, 2, 1, 3):
        for number in range(1, count + 1):
            model.weight.grad = torch.tensor([[3.0, 4.0]]) * number
            optimizer.step()
        found = probe.read()
        assert found["grad_norm"] == pytest.approx(5.0 * (count + 1) / 2) and found["grad_norm_max"] == pytest.approx(5.0 * count)
    assert "grad_norm" not in probe.read()  # without a step there is none


def test_a_mean_outside_its_own_range_is_not_judged(tmp_path: Path) -> None:
    from rldk.core.event import Event
    from rldk.judge.judge import Judge

    high = {"ratio_max": 1.4}
    for bounds, found in (({}, True), ({"ratio_min": 0.6, **high}, False), ({"ratio_min": 0.1, **high}, True)):
        judge = Judge()
        for step in range(30):
            judge.take(Event(step, {"ratio_mean": 0.4997 + 1e-4 * (step % 3), "ratio_std": 0.1, "reward_mean": 0.5, **bounds}))
        assert ("ratio_explosion" in {one.type for one in judge.anomalies}) == found
