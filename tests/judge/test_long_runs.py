"""A run with very many rows is judged in groups of them: in bounded time, with the same findings at the same places."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rldk.ingest import read_runs
from rldk.judge import scan
from rldk.judge.result import Result
from rldk.runs.merge import condensed
from rldk.runs.run import Run

ROWS = 3000


def written(path: Path, fault: str = "", rows: int = ROWS) -> Run:
    """A run whose reward rises, with an evaluation now and then. `nan` has some rows without one, and `fall` loses it."""
    chance = np.random.default_rng(0)
    lines = []
    for n in range(rows):
        reward = min(n / 1000, 1.0) + 0.05 * chance.normal()
        row = {"step": n, "reward_mean": reward, "kl_mean": 0.02, "entropy_mean": 1.0 + 0.05 * chance.normal()}
        if fault == "fall" and n >= 2000:
            row["reward_mean"] = max(1.0 - (n - 2000) / 15, -1.0) + 0.05 * chance.normal()
        if fault == "nan" and 2000 <= n < 2100 and n % 5 == 2:
            row["reward_mean"] = float("nan")
        if n % 100 == 1:
            row["eval_reward_mean"] = reward
        lines.append(json.dumps(row))
    path.write_text("\n".join(lines))
    return read_runs(path).runs[0]


def judged(run: Run, monkeypatch: pytest.MonkeyPatch, most: int) -> Result:
    monkeypatch.setattr(scan, "MAX_JUDGED_ROWS", most)
    monkeypatch.setattr(scan, "CONDENSED_ROWS", 700)
    return scan.judge_run(run)


@pytest.mark.parametrize("fault", ["", "fall", "nan"])
def test_the_findings_are_those_of_all_rows(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = written(tmp_path / "log.jsonl", fault)
    whole = judged(run, monkeypatch, ROWS)
    assert not any("judged as one" in note for note in whole.notes)
    grouped = judged(run, monkeypatch, 1000)
    assert f"the run has {ROWS:,} rows: every 5 of them are judged as one, by the last value of each metric" in grouped.notes
    assert grouped.verdict == whole.verdict == ("critical" if fault == "fall" else "healthy")
    assert {one.type for one in grouped.anomalies} == {one.type for one in whole.anomalies}
    if fault == "fall":
        first, early = whole.anomalies[0], grouped.anomalies[0]
        assert 2000 <= first.index <= 2050 and abs(first.index - early.index) <= 50 and early.step == early.index
    assert len(grouped.run) == grouped.to_dict()["events"] == grouped.engine.events == ROWS


def test_the_accuracy_of_the_batch_does_not_become_a_held_out_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(0)
    rows = [
        {"step": n, "reward_mean": n / ROWS + 0.05 * chance.normal(), "accuracy": 0.1 * (n > 1500) * chance.integers(4)}
        for n in range(ROWS)
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run = read_runs(tmp_path / "log.jsonl").runs[0]
    for most in (1000, ROWS):
        assert {one.clause for one in judged(run, monkeypatch, most).anomalies} == {"hollow"}  # of the accuracy of the batch


def test_each_group_keeps_its_last_values(tmp_path: Path) -> None:
    run = written(tmp_path / "log.jsonl")
    short, ends = condensed(run, 700)
    assert len(short) == 600 and ends[:2].tolist() == [4, 9] and short.steps.tolist() == ends.tolist()
    rewards, evaluated = short.columns["reward_mean"].values, short.columns["eval_reward_mean"].values
    assert rewards.tolist() == run.columns["reward_mean"].values[ends].tolist()
    assert np.isfinite(evaluated).sum() == 30  # none of the few is lost, though none is in the last row of a group
    assert condensed(run, ROWS)[0] is run
