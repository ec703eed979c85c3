"""Section 4: reading runs back."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from rldk.adapters.trl import TRLAdapter
from rldk.ingest import ingest_runs


def write(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


ROWS = [{"step": n, "objective/kl": 0.1 * n, "objective/scores": 0.5, "policy/entropy_avg": 2.0} for n in range(1, 6)]


@pytest.mark.full
@pytest.mark.filterwarnings("default")
def test_the_adapter_reads_the_log_that_trl_itself_keeps(ppo_run) -> None:
    path = next((ppo_run.folder / "model").glob("checkpoint-12")) / "trainer_state.json"
    assert TRLAdapter(path).can_handle()
    frame, events = TRLAdapter(path).load(), ppo_run.events()
    assert {"step", "wall_time", "run_id", "phase"} <= set(frame.columns)
    assert frame["step"].tolist() == [event["step"] for event in events]
    for name in ("kl_mean", "reward_mean", "entropy_mean", "clip_frac", "policy_loss", "value_loss", "lr"):
        assert frame[name].tolist() == pytest.approx([event["metrics"][name] for event in events])


def test_the_adapter_of_trl_says_what_it_can_handle(tmp_path) -> None:
    assert TRLAdapter(write(tmp_path / "trl.jsonl", ROWS)).can_handle()
    assert not TRLAdapter(write(tmp_path / "other.jsonl", [{"cats": 3, "dogs": "many"}])).can_handle()


def test_a_path_a_glob_and_a_list_are_read(tmp_path) -> None:
    one, two = write(tmp_path / "a.jsonl", ROWS), write(tmp_path / "b.jsonl", ROWS[:4])
    assert len(ingest_runs(one)) == len(ingest_runs(str(one))) == 5
    for source in (str(tmp_path / "*.jsonl"), [one, two], [str(one), str(two)], tmp_path):
        frame = ingest_runs(source)
        assert len(frame) in (5, 9) and {"step", "kl_mean", "reward_mean", "run_id", "phase", "wall_time"} <= set(frame.columns)
    assert ingest_runs([one, two])["run_id"].nunique() >= 1


def test_a_field_map_names_keys_of_ones_own(tmp_path) -> None:
    path = write(tmp_path / "own.jsonl", [{"step": n, "my_kl": 0.1 * n, "reward": 1.0} for n in range(4)])
    assert ingest_runs(path, field_map={"my_kl": "kl_mean"})["kl_mean"].tolist() == pytest.approx([0.0, 0.1, 0.2, 0.3])


def test_malformed_lines_are_skipped_counted_and_reported_with_their_numbers(tmp_path, caplog) -> None:
    path = write(tmp_path / "run.jsonl", ROWS)
    lines = path.read_text().splitlines()
    lines[1:1], lines[4:4] = ['{"step": 2, "objective/kl": '], ["[not json"]
    path.write_text("\n".join(lines) + "\n")
    for read in (lambda: ingest_runs(path, adapter_hint="trl"), lambda: TRLAdapter(path).load()):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "rldk"):
            assert len(read()) == 5
        assert "2 lines" in caplog.text and "2" in caplog.text and "5" in caplog.text, caplog.text


def test_an_unknown_schema_falls_to_the_flexible_adapter_with_a_message(tmp_path, caplog) -> None:
    path = write(tmp_path / "foreign.jsonl", [{"step": n, "my_special": 0.1 * n, "reward": 0.5} for n in range(6)])
    for hint in (None, "trl"):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "rldk"):
            frame = ingest_runs(path, adapter_hint=hint)
        assert len(frame) == 6 and "my_special" in frame
        assert hint is None or ("flexible" in caplog.text and "field_map" in caplog.text), caplog.text


def test_debug_mode_shows_what_was_read_from_where_and_what_could_not_be(tmp_path, caplog) -> None:
    write(tmp_path / "run.jsonl", ROWS)
    (tmp_path / "notes.jsonl").write_text('{"cats": "three"}\n' * 3)
    with caplog.at_level(logging.DEBUG, "rldk"):
        ingest_runs(tmp_path)
    text = caplog.text
    assert "run.jsonl" in text and "adapter" in text and "5 events" in text  # what and from where
    assert "objective/kl" in text and "kl_mean" in text  # under which key
    assert "notes.jsonl" in text  # and what could not be
