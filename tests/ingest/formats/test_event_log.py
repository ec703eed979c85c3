"""The event log of rldk: read as it was written, with what is no event counted and located."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest

from rldk.core.event import Event
from rldk.ingest.formats.json_lines import EventLogAdapter
from rldk.log import blocks

CONTRACT = {
    "step": 10, "wall_time": 100.5,
    "metrics": {"reward_mean": 0.8, "reward_std": 0.2, "kl_mean": 0.05, "entropy_mean": 0.9, "clip_frac": 0.1, "grad_norm": 1.0,
    "lr": 0.001, "loss": 0.5},
    "rng": {"seed": 42}, "data_slice": {"tokens_in": 1000, "tokens_out": 500},
    "model_info": {"run_id": "my_ppo_run", "git_sha": "abc123", "phase": "train"}, "notes": ["High clipping fraction detected"],
}  # fmt: skip


def write(path: Path, rows: list[Any]) -> Path:
    path.write_bytes(b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows))
    return path


def test_the_contract_event_is_a_row_of_the_frame(tmp_path: Path) -> None:
    adapter = EventLogAdapter(write(tmp_path / "x_events.jsonl", [CONTRACT]))
    assert adapter.can_handle()
    row = adapter.load().iloc[0].to_dict()
    assert row == {
        "step": 10, "wall_time": 100.5, "reward_mean": 0.8, "reward_std": 0.2, "kl_mean": 0.05, "entropy_mean": 0.9,
        "clip_frac": 0.1, "grad_norm": 1.0,
        "lr": 0.001, "loss": 0.5, "run_id": "my_ppo_run", "phase": "train", "git_sha": "abc123", "seed": 42.0,
        "tokens_in": 1000.0,
        "tokens_out": 500.0, "notes": "High clipping fraction detected",
    }  # fmt: skip


def test_events_come_out_as_they_went_in(tmp_path: Path) -> None:
    written = []
    for step in range(50):
        raw = json.loads(json.dumps(CONTRACT))
        raw |= {"step": step, "notes": [f"note {step}"] if step % 7 == 0 else []}
        raw["metrics"] |= {"reward_mean": math.nan if step == 13 else step / 3, "mine": step}
        written.append(Event.from_dict(raw))
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(event.to_json() + b"\n" for event in written))
    (run,) = EventLogAdapter(path).runs()
    for event, back in zip(written, run.events(), strict=True):
        assert back.model_info.pop("reductions") == {"kl_mean": "unstated"}
        assert repr(sorted(event.metrics.items())) == repr(sorted(back.metrics.items()))
        event.metrics = back.metrics = {}
        assert event == back


def test_lines_that_are_no_events_are_counted_and_located(tmp_path: Path) -> None:
    rows = [
        CONTRACT,
        b"{torn",
        [1],
        {"metrics": {}},
        {"step": 1.5, "metrics": {}},
        {"step": 1, "metrics": 3},
        {**CONTRACT, "step": 11},
    ]
    adapter = EventLogAdapter(write(tmp_path / "log.jsonl", rows))
    assert adapter.load()["step"].tolist() == [10, 11]
    assert [line for line, _ in adapter.problems.skipped] == [2, 3, 4, 5, 6]
    assert adapter.problems.total == 5 and "not JSON" in adapter.problems.skipped[0][1]
    assert "whole number, got 1.5" in adapter.problems.skipped[3][1]


def test_problems_deep_in_a_long_log_have_their_line_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 4096)
    rows: list[Any] = [{**CONTRACT, "step": step} for step in range(400)]
    rows[137], rows[301], rows[350] = b"garbage", {**CONTRACT, "step": 0.5}, {**CONTRACT, "step": "x"}
    adapter = EventLogAdapter(write(tmp_path / "log.jsonl", rows))
    assert len(adapter.load()) == 397
    assert [line for line, _ in adapter.problems.skipped] == [138, 302, 351]


def test_compressed_logs_are_read(tmp_path: Path) -> None:
    plain = write(tmp_path / "log.jsonl", [{**CONTRACT, "step": step} for step in range(100)])
    packed = tmp_path / "log.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert EventLogAdapter(packed).load().equals(EventLogAdapter(plain).load())


@pytest.mark.parametrize(
    "rows", [[{"step": 1, "loss": 2.0}], [{"metrics": {"a": 1}}], [b"text"], [b"[]"], [{"step": 1, "metrics": [1]}]]
)
def test_other_files_are_not_handled_and_it_is_said_why(rows: list[Any], tmp_path: Path) -> None:
    adapter = EventLogAdapter(write(tmp_path / "log.jsonl", rows))
    assert not adapter.can_handle()
    assert "`step`" in adapter.why


def test_a_resumed_log_is_one_run(tmp_path: Path) -> None:
    steps = [*range(10), *range(6, 15)]
    path = write(tmp_path / "log.jsonl", [{"step": step, "metrics": {"loss": float(n)}} for n, step in enumerate(steps)])
    (run,) = EventLogAdapter(path).runs()
    assert run.steps.tolist() == list(range(15))
    assert run.columns["loss"].values.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, *range(10, 19)]
    assert any("resumed at step 6" in note for note in run.notes)


def test_a_field_map_key_that_no_row_has_is_said(tmp_path: Path) -> None:
    adapter = EventLogAdapter(write(tmp_path / "log.jsonl", [CONTRACT]), field_map={"nope": "kl_mean"})
    (run,) = adapter.runs()
    assert "the field map names 'nope', which no row has" in run.notes
