"""Alerts in a log: one that is damaged is left out, and costs neither the others nor the scan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rldk.core.event import Event
from rldk.judge.alerts import ALERTS, Alert, alerts_in, alerts_text
from rldk.judge.results import judge_paths

SOUND = Alert("nonfinite_gradient", "critical", 21, "The gradient is not finite.", "Skip the step.", "probe", True)


def event_with(text: str) -> Event:
    return Event(21, {"reward_mean": 0.5, "kl_mean": 0.1}, model_info={ALERTS: text})


def test_alerts_are_read_as_they_were_written() -> None:
    plain = Alert("kl_limit", "warning", 3, "The KL is high.")
    assert alerts_in(event_with(alerts_text([SOUND, plain]))) == [SOUND, plain]
    short = {"type": "kl_limit", "severity": "warning", "step": 3, "message": "The KL is high."}
    assert alerts_in(event_with(json.dumps([short]))) == [plain]


@pytest.mark.parametrize(
    "change",
    [
        {"type": ["x"]}, {"type": None}, {"message": {"a": 1}}, {"advice": 5}, {"tracker": 1.5}, {"step": "soon"},
        {"step": 10**400}, {"step": True}, {"severity": "fatal"}, {"severity": ["critical"]}, {"lasting": "yes"},
    ],
)  # fmt: skip
def test_a_damaged_alert_is_left_out_and_the_others_stay(change: dict[str, Any], tmp_path: Path) -> None:
    text = json.dumps([{**SOUND.to_dict(), **change}, SOUND.to_dict()])
    assert alerts_in(event_with(text)) == [SOUND]
    events = [*(Event(step, {"reward_mean": 0.5 + 0.01 * (step % 3), "kl_mean": 0.1}) for step in range(1, 21)), event_with(text)]
    (tmp_path / "run_events.jsonl").write_bytes(b"".join(event.to_json() + b"\n" for event in events))
    (result,) = judge_paths(tmp_path)
    assert [anomaly.type for anomaly in result.anomalies] == ["nonfinite_gradient"]


@pytest.mark.parametrize("text", ["", "[" * 100_000, "{}", '"text"', "5", "[1, null, []]", '[{"type": "x"}]', "\ud800"])
def test_a_text_without_alerts_holds_none(text: str) -> None:
    assert alerts_in(event_with(text)) == []
