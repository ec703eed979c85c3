"""NaN is seen before the optimizer takes it, is on disk when training crashes, and can be kept from the weights."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default")]
pytest.importorskip("trl")


def finite(trainer: Any) -> bool:
    return all(bool(tensor.isfinite().all()) for tensor in trainer.model.state_dict().values())


def test_ppo_says_it_before_the_step_and_has_it_on_disk(tmp_path: Path) -> None:
    import trl_faults

    found = trl_faults.run("ppo", "nan_reward", tmp_path, updates=8)
    assert found.error is not None  # the next generation crashes, as it does without rldk
    assert not finite(found.trainer)
    first = found.alerts[0]
    assert (first["type"], first["step"], first["tracker"]) == ("nonfinite_gradient", 5, "probe")
    events = [json.loads(line) for line in (found.folder / "run_events.jsonl").read_text().splitlines()]
    assert [event["step"] for event in events] == [1, 2, 3, 4, 5]
    assert math.isnan(events[-1]["metrics"]["policy_grad_norm"]) and events[-1]["metrics"]["nonfinite_count"] == 4
    assert "before the optimizer step" in events[-1]["notes"][0].lower()
    raised = [(one.type, one.step, one.severity) for one in found.anomalies]
    assert raised == [("nonfinite_gradient", 5, "critical"), ("nonfinite_metric", 5, "critical")]
    assert json.loads((found.folder / "run_final_report.json").read_text())["verdict"] == "critical"


def test_ppo_goes_on_with_whole_weights_where_such_steps_are_skipped(tmp_path: Path) -> None:
    import trl_faults

    found = trl_faults.run("ppo", "nan_reward", tmp_path, updates=7, skip_nonfinite_steps=True)
    assert found.error is None and finite(found.trainer)
    events = [json.loads(line) for line in (found.folder / "run_events.jsonl").read_text().splitlines()]
    assert [event["metrics"]["update_applied"] for event in events] == [1, 1, 1, 0, 0, 0, 0]
    assert "skipped" in found.alerts[0]["message"]


def test_grpo_rewards_of_none_are_missing_rewards(tmp_path: Path) -> None:
    import trl_faults

    found = trl_faults.run("grpo", "nan_reward", tmp_path, updates=16)
    events = [json.loads(line) for line in (found.folder / "run_events.jsonl").read_text().splitlines()]
    assert events[7]["metrics"]["reward_mean"] is not None and events[8]["metrics"]["reward_mean"] is None
    assert events[8]["metrics"]["nonfinite_count"] == 16
    raised = [(one.type, one.clause, one.step, one.severity) for one in found.anomalies]
    assert raised == [("missing_reward", "all_missing", 13, "critical")]
    report = json.loads((found.folder / "run_final_report.json").read_text())
    assert [incident["cause"] for incident in report["incidents"]] == ["reward_missing"]


def test_grpo_rewards_of_which_some_are_none_are_told(tmp_path: Path) -> None:
    import trl_tiny

    from rldk.integrations.trl import RLDKCallback

    def reward(completions: list[Any], **_: Any) -> list[float | None]:
        return [None if place % 4 == 0 else good for place, good in enumerate(trl_tiny.good_words(completions))]

    watched = RLDKCallback(tmp_path / "rldk", run_id="run", terminal=False, enable_resource_monitoring=False)
    trl_tiny.group_trainer("GRPO", tmp_path / "t", [watched], 8, reward=reward).train()
    events = [json.loads(line) for line in (tmp_path / "rldk" / "run_events.jsonl").read_text().splitlines()]
    assert [event["metrics"]["reward_missing_frac"] for event in events] == [0.25] * 8 and watched.anomalies == []
    assert [event["step"] for event in events if "25% of the responses have no reward." in event.get("notes", ())] == [7]


@pytest.mark.parametrize("skip", [False, True])
def test_grpo_poisoned_loss_is_seen_although_the_log_hides_it(skip: bool, tmp_path: Path) -> None:
    import trl_tiny

    from rldk.integrations.trl import RLDKCallback

    watched = RLDKCallback(tmp_path / "rldk", run_id="run", terminal=False, skip_nonfinite_steps=skip)
    trainer = trl_tiny.group_trainer("GRPO", tmp_path / "t", [watched], 3)
    honest = trainer.compute_loss
    trainer.compute_loss = lambda *given, **options: (
        honest(*given, **options) * (math.nan if trainer.state.global_step == 2 else 1.0)
    )
    trainer.train()
    alerts = json.loads((tmp_path / "rldk" / "run_alerts.json").read_text())
    assert (alerts[0]["type"], alerts[0]["step"]) == ("nonfinite_gradient", 3)
    last = json.loads((tmp_path / "rldk" / "run_events.jsonl").read_text().splitlines()[-1])["metrics"]
    assert math.isfinite(last["loss"]) and math.isnan(last["grad_norm"])  # Hugging Face's filter hides the loss
    assert finite(trainer) is skip
    assert last.get("update_applied") == (0.0 if skip else None)
