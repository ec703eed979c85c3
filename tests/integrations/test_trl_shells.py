"""The shells themselves: what they accept, refuse and add; and what is said where TRL is not there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

WITHOUT = """
import importlib.util, sys
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name.split('.')[0] in ("trl", "transformers") else real(name, *rest)
import rldk, rldk.integrations.trl as kit
assert "transformers" not in sys.modules and "torch" not in sys.modules
for name in kit.__all__:
    if name == "RLDKDashboard":
        continue
    try:
        getattr(kit, name)
    except ImportError as error:
        assert "pip install 'rldk[trl]'" in str(error), error
    else:
        raise SystemExit(f"{name} was there")
try:
    from rldk.integrations.trl import RLDKCallback
except ImportError as error:
    print(error)
"""


def test_without_trl_the_names_say_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert "pip install 'rldk[trl]'" in done.stdout


@pytest.mark.full
def test_thirteen_names() -> None:
    pytest.importorskip("trl")
    from rldk.integrations import trl as kit

    assert len(kit.__all__) == 13 and all(getattr(kit, name) is not None for name in kit.__all__)


@pytest.mark.full
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"run_id": "../../etc/passwd"}, "run_id"),
        ({"run_id": ""}, "run_id"),
        ({"stop_on": "fatal"}, "stop_on"),
        ({"alert_thresholds": {"no_such_metric": 1.0}}, "no_such_metric"),
        ({"alert_thresholds": {"kl": "high"}}, "number"),
        ({"log_interval": 0}, "log_interval"),
        ({"report_to": "papyrus"}, "papyrus"),
        ({"confirm": -1}, "confirm"),
    ],
)
def test_what_cannot_be_is_said_before_training(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    pytest.importorskip("trl")
    from rldk.integrations.trl import RLDKCallback

    with pytest.raises(ValueError, match=said):
        RLDKCallback(tmp_path, **options)


@pytest.mark.full
def test_the_record_has_the_forty_fields() -> None:
    pytest.importorskip("trl")
    from dataclasses import fields

    import trl_matrix_run

    from rldk.integrations.trl import RLDKMetrics

    names = [one.name for one in fields(RLDKMetrics)]
    assert len(trl_matrix_run.PPO_FIELDS) == 40 and names[:40] == trl_matrix_run.PPO_FIELDS
    empty = RLDKMetrics()
    assert all(getattr(empty, name) is not None for name in names)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real training whose callback adds metrics of its own, some by the old names of TRL."""
    pytest.importorskip("trl")
    import trl_tiny

    from rldk.integrations.trl import CustomRLDKCallback, PPOMonitor

    class Mine(CustomRLDKCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **given: Any) -> Any:
            if "loss" in (logs or {}):
                logs["my_metric"] = 7.0 * state.global_step
                logs["ppo/policy/policy_loss"], logs["ppo/val/policy_loss"] = 0.25, 0.75
                logs["ppo/rewards/mean"], logs["ppo/policy/kl_mean"] = 0.1 * state.global_step, 0.02 * state.global_step
            return super().on_log(args, state, control, logs=logs, **given)

    class Silent(PPOMonitor):
        def on_log(self, *args: Any, **given: Any) -> None:
            """A subclass that forgets `super()` holds nobody up."""

    out = tmp_path_factory.mktemp("told")
    marks = {"target_reward": 0.3, "max_kl_divergence": 0.05}
    callbacks = [PPOMonitor(out, run_id="run", kl_threshold=0.09, terminal=False), Silent(out, terminal=False)]
    callbacks.append(Mine(out, performance_benchmarks=marks, alert_thresholds={"stability": 1.1}, terminal=False))
    trainer = trl_tiny.other_trainer("SFT", out / "t", callbacks, 5)
    trainer.train()
    (out / "benchmarks.json").write_text(json.dumps(callbacks[-1].benchmarks))
    return out


@pytest.mark.full
@pytest.mark.filterwarnings("default")
def test_metrics_of_a_subclass_and_old_keys_are_kept(told: Path) -> None:
    events = [json.loads(line) for line in (told / "run_events.jsonl").read_text().splitlines()]
    assert [event["step"] for event in events] == [1, 2, 3, 4, 5]
    last = events[-1]["metrics"]
    assert last["my_metric"] == 35.0
    assert (last["policy_loss"], last["value_policy_loss"]) == (0.25, 0.75)
    assert last["reward_mean"] == 0.5 and last["kl_mean"] == pytest.approx(0.1)


@pytest.mark.full
@pytest.mark.filterwarnings("default")
def test_the_stricter_limit_counts_and_marks_are_reached(told: Path) -> None:
    alerts = json.loads((told / "run_alerts.json").read_text())
    crossed = [one for one in alerts if one["type"] == "user_limit_exceeded"]
    assert [(one["step"], one["threshold"]) for one in crossed] == [(3, 0.05)]  # 0.06 at step 3; once, not each step
    assert [one["type"] for one in alerts if one["tracker"] == "scores"] == ["low_training_stability"]
    marks = json.loads((told / "benchmarks.json").read_text())
    assert marks["target_reward"] == {"target": 0.3, "reached": True, "step": 3, "best": 0.5}


@pytest.mark.full
@pytest.mark.filterwarnings("default")
def test_a_ppo_trainer_from_one_name(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    import trl_tiny

    from rldk.integrations.trl import EventWriterCallback, create_ppo_trainer
    from rldk.integrations.trl.ppo_trainer import find_ppo

    folder = trl_tiny.saved(tmp_path / "model")
    config = find_ppo()[1](
        output_dir=str(tmp_path / "t"), report_to="none", per_device_train_batch_size=4, total_episodes=8, response_length=6,
        use_cpu=True, bf16=False, num_sample_generations=0, num_mini_batches=1, gradient_accumulation_steps=1,
        save_strategy="no", gradient_checkpointing=False,
    )  # fmt: skip
    log = tmp_path / "events.jsonl"
    given = {"ppo_config": config, "train_dataset": trl_tiny.prompts(16, tokenised=False), "event_log_path": log}
    trainer = create_ppo_trainer(folder, callbacks=[EventWriterCallback(log)], **given)
    assert sum(isinstance(one, EventWriterCallback) for one in trainer.callback_handler.callbacks) == 1
    for _ in range(2):  # a second run appends
        trainer = create_ppo_trainer(model_name=folder, **given)
        trainer.train()
    assert [json.loads(line)["step"] for line in log.read_text().splitlines()] == [1, 2, 1, 2]
