"""A run that is followed is judged as a scan of the finished log judges it, in any format and however the log grows."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pytest

from rldk.core.event import Event
from rldk.ingest import read_runs
from rldk.judge.follow import FollowedRun, LogFollower
from rldk.judge.scan import judge_run
from rldk.testing.streams import faulty

CONFIG = {"learning_rate": 1e-5, "beta": 0.04, "rldk": {"limits": {"reward_mean": {"max": 0.0, "severity": "critical"}}}}


def append(path: Path, events: list[Event]) -> Path:
    with path.open("ab") as file:
        file.writelines(event.to_json() + b"\n" for event in events)
    return path


def read_all(follower: LogFollower[FollowedRun], limit: int | None = None) -> list[str]:
    """Read until nothing is left; the types of the anomalies that were raised."""
    raised = [anomaly.type for _, anomaly in follower.read(limit)]
    while follower.busy or follower.is_reading:
        raised += [anomaly.type for _, anomaly in follower.read(limit)]
        time.sleep(0.001)
    return raised


def csv_of(values: list[float]) -> str:
    return "step,reward_mean,kl_mean\n" + "".join(f"{n},{value},0.01\n" for n, value in enumerate(values))


@pytest.mark.parametrize("config", [None, CONFIG])
def test_the_result_is_that_of_a_scan(tmp_path: Path, config: dict[str, object] | None) -> None:
    events = faulty("kl_explosion", "ppo", 400, 150, 2)
    if config:
        events[0].model_info["config"] = config
    path = append(tmp_path / "r_events.jsonl", events[:200])
    follower = LogFollower(path, FollowedRun)
    raised = read_all(follower, limit=70)
    append(path, events[200:])
    raised += read_all(follower, limit=70)
    found, scanned = follower.runs[events[0].run_id or "r"].result.to_dict(), judge_run(read_runs(path).runs[0]).to_dict()
    for part in ("verdict", "state", "reason", "scores", "anomalies", "incidents", "would_stop"):
        assert found[part] == scanned[part], part
    assert raised == [anomaly["type"] for anomaly in scanned["anomalies"]]
    assert ("user_limit_exceeded" in raised) == (config is not None)


@pytest.mark.parametrize("limit", [None, 7])
def test_rows_of_one_step_are_judged_once(tmp_path: Path, limit: int | None) -> None:
    """As in a scan, also where what is read at once ends in the middle of a step."""
    events = faulty("kl_explosion", "ppo", 400, 150, 2)
    halves = [
        Event(event.step, {name: event.metrics[name] for name in names}, event.wall_time, model_info=event.model_info)
        for event in events
        for names in (sorted(event.metrics)[::2], sorted(event.metrics)[1::2])
    ]
    path = append(tmp_path / "r_events.jsonl", halves[:301])
    follower = LogFollower(path, FollowedRun)
    read_all(follower, limit)
    append(path, halves[301:])
    read_all(follower, limit)
    (run,) = follower.runs.values()
    scanned = judge_run(read_runs(path).runs[0]).to_dict()
    assert run.events == len(events)
    assert run.result.to_dict()["anomalies"] == scanned["anomalies"] != []


def test_of_another_format_only_new_rows_are_judged_until_old_ones_change(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    follower = LogFollower(path, FollowedRun)
    assert read_all(follower) == [] and not follower.open()
    follower._next_try = 0.0
    path.write_text(csv_of([0.1] * 20))
    read_all(follower)
    (run,) = follower.runs.values()
    assert run.events == 20 and follower.restarts == 0
    follower.log._not_before = 0.0  # type: ignore[union-attr]
    path.write_text(csv_of([0.1] * 25))
    read_all(follower)
    assert run.events == 25 and follower.latest is run
    follower.log._not_before = 0.0  # type: ignore[union-attr]
    path.write_text(csv_of([0.2] * 30))
    read_all(follower)
    assert follower.restarts == 1 and [one.events for one in follower.runs.values()] == [30]
    (run,) = follower.runs.values()
    assert run.result.to_dict() == judge_run(read_runs(path).runs[0]).to_dict()


def test_a_log_that_is_replaced_is_judged_from_the_start(tmp_path: Path) -> None:
    path = append(tmp_path / "r_events.jsonl", [Event(n, {"reward_mean": 1.0}) for n in range(50)])
    follower = LogFollower(path, FollowedRun)
    read_all(follower)
    assert follower.runs["r"].events == 50
    append(tmp_path / "new", [Event(n, {"reward_mean": 5.0}) for n in range(7)]).replace(path)
    for _ in range(3):
        read_all(follower)
    assert follower.runs["r"].events == 7 and follower.restarts == 1


def test_a_compressed_event_log_is_read_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "r_events.jsonl.gz"
    path.write_bytes(gzip.compress(b"".join(Event(n, {"reward_mean": 0.1 * n}).to_json() + b"\n" for n in range(30))))
    follower = LogFollower(path, FollowedRun)
    read_all(follower)
    assert [run.events for run in follower.runs.values()] == [30]


def test_of_very_many_runs_in_one_file_the_last_are_kept(tmp_path: Path) -> None:
    events = [Event(n, {"reward_mean": 1.0}, model_info={"run_id": f"r{n:04}"}) for n in range(210)]
    follower = LogFollower(append(tmp_path / "many_events.jsonl", [*events, events[0]]), FollowedRun)
    read_all(follower)
    assert list(follower.runs) == [f"r{n:04}" for n in range(10, 210)]


def test_what_cannot_be_read_is_a_problem_that_may_pass(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("just words\n")
    follower = LogFollower(path, FollowedRun)
    read_all(follower)
    assert "log.jsonl" in follower.problem and not follower.runs
    path.unlink()
    append(path, [Event(n, {"reward_mean": 1.0}) for n in range(5)])
    follower._next_try = 0.0
    read_all(follower)
    assert follower.problem == "" and follower.latest is not None and follower.latest.events == 5
