"""The process behind the table of runs: rows of the index and of newer logs, curves of many runs, comparisons, notes."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rldk.core.event import Event
from rldk.dashboard.folder import Folder
from rldk.dashboard.processes import numbers
from rldk.dashboard.workbench.followed_log import Sparkline
from rldk.dashboard.workbench.notes import NOTES
from rldk.dashboard.workbench.process import Workbench
from rldk.testing.streams import faulty, healthy

from .conftest import write

pytestmark = pytest.mark.full


def with_config(events: list[Event], **config: Any) -> list[Event]:
    return [replace(events[0], model_info={**events[0].model_info, "config": config}), *events[1:]]


def named(events: list[Event], name: str) -> list[Event]:
    return [replace(event, model_info={**event.model_info, "run_id": name}) for event in events]


def judged(bench: Workbench, seconds: float = 60.0) -> dict[str, dict[str, Any]]:
    """The rows by name, once all logs are judged."""
    bench.table._next_look = 0.0
    until = time.monotonic() + seconds
    while bench.work() or bench.table.waiting:
        assert time.monotonic() < until, "the logs were not judged"
    return {row["name"]: row for row in bench.rows()["rows"]}


def index(folder: Path) -> None:
    from rldk.fleet.index import update_index
    from rldk.fleet.work import Reading

    update_index(folder, Reading(), jobs=1)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, sick_events: list[Event], healthy_events: list[Event]) -> Path:
    folder = tmp_path_factory.mktemp("store")
    write(folder / "sick_events.jsonl", named(with_config(sick_events, learning_rate=1e-3, seed=1, model="m"), "sick"))
    for seed in (1, 2):
        events = with_config(healthy("ppo", 150, seed), learning_rate=1e-6, seed=seed, model="m")
        write(folder / "sub" / f"calm{seed}_events.jsonl", named(events, f"calm{seed}"))
    for age, path in enumerate(sorted(folder.rglob("*.jsonl"))):
        os.utime(path, (time.time() - 5000 - age, time.time() - 5000 - age))
    return folder


def test_what_is_judged_here_is_what_the_index_says(runs: Path) -> None:
    pytest.importorskip("pyarrow")
    here = judged(Workbench(Folder(runs)))
    index(runs)
    bench = Workbench(Folder(runs))
    indexed = {row["name"]: row for row in bench.rows()["rows"]}
    assert bench.table.waiting == 0 and bench.rows()["indexed"]
    assert here.keys() == indexed.keys() == {"sick", "calm1", "calm2"}
    for name, row in here.items():
        other = indexed[name]
        for field in ("id", "key", "verdict", "status", "events", "last_step", "reward", "kl", "cause_title", "config"):
            assert row[field] == other[field], (name, field)
        assert row["reward_curve"][-1] == pytest.approx(other["reward_curve"][-1], rel=0.3)
    assert indexed["sick"]["verdict"] == "critical" and "KL" in indexed["sick"]["cause_title"]
    assert indexed["sick"]["config"] == {"learning_rate": 1e-3, "seed": 1}  # the model is the same in all runs


def test_runs_newer_than_the_index_are_judged_as_they_are_now(tmp_path: Path, sick_events: list[Event]) -> None:
    pytest.importorskip("pyarrow")
    log = write(tmp_path / "a_events.jsonl", named(sick_events[:100], "a"))
    write(tmp_path / "b_events.jsonl", named(faulty("kl_explosion", "ppo", 300, 100, 5), "b"))
    index(tmp_path)
    bench = Workbench(Folder(tmp_path))
    assert judged(bench)["a"]["verdict"] == "healthy"
    write(log, named(sick_events[100:], "a"))
    write(tmp_path / "c_events.jsonl", named(sick_events, "c"))
    bench.table._next_look = 0.0
    bench.rows()
    assert bench.table.waiting == 2  # the old verdict of `a` is shown until it is judged again
    after = judged(bench)
    assert [after[name]["verdict"] for name in "abc"] == ["critical"] * 3
    assert after["a"]["last_step"] == sick_events[-1].step and after["a"]["status"] == "live"
    (tmp_path / "c_events.jsonl").unlink()
    assert judged(bench).keys() == {"a", "b"}


def test_an_index_made_from_elsewhere_is_found_by_the_ends_of_its_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, healthy_events: list[Event]
) -> None:
    pytest.importorskip("pyarrow")
    for first, name in enumerate(("run_events.jsonl", "deep/run_events.jsonl")):
        write(tmp_path / "store" / name, named(healthy_events[first : first + 100], name))
    monkeypatch.chdir(tmp_path)
    index(Path("store"))
    bench = Workbench(Folder(tmp_path / "store"))
    rows = {row["key"]: row for row in bench.rows()["rows"]}
    assert bench.table.waiting == 0
    assert {key: row["name"] for key, row in rows.items()} == {key: key for key in ("run_events.jsonl", "deep/run_events.jsonl")}


def test_an_index_that_is_none_is_said_and_the_logs_are_judged(tmp_path: Path, healthy_events: list[Event]) -> None:
    pytest.importorskip("pyarrow")
    write(tmp_path / "a_events.jsonl", healthy_events[:60])
    (tmp_path / ".rldk").mkdir()
    (tmp_path / ".rldk" / "index.parquet").write_bytes(b"PAR1 nothing")
    bench = Workbench(Folder(tmp_path))
    (row,) = judged(bench).values()
    assert row["verdict"] == "healthy" and "not an index" in bench.rows()["remarks"][0]


def test_nothing_outside_of_the_folder_is_listed_or_read(tmp_path: Path, healthy_events: list[Event]) -> None:
    write(tmp_path / "secret_events.jsonl", healthy_events[:30])
    runs = tmp_path / "runs"
    write(runs / "a_events.jsonl", healthy_events[:30])
    (runs / "link_events.jsonl").symlink_to(tmp_path / "secret_events.jsonl")
    (runs / "folder").symlink_to(tmp_path)
    bench = Workbench(Folder(runs))
    assert [row["key"] for row in judged(bench).values()] == ["a_events.jsonl"] and bench.rows()["outside"] == 1
    for wanted in ("../secret_events.jsonl", "link_events.jsonl", "a_events.jsonl", ""):
        assert bench.answer("metrics", {"runs": [wanted]})["runs"] == []
        assert bench.answer("compare", {"runs": [wanted, wanted]})["problem"].startswith("Expected at least two runs")
        assert bench.answer("annotate", {"runs": [wanted], "add": ["x"], "remove": [], "note": None}) == {"problem": ""}
    assert json.loads((runs / NOTES).read_text())["runs"] == {}


def test_a_file_that_is_not_a_log_has_no_row_and_odd_logs_have_one(tmp_path: Path) -> None:
    (tmp_path / "broken_events.jsonl").write_bytes(b"\x00\xff\xfe" * 2000)
    (tmp_path / "settings.json").write_text('{"lr": 1}')
    (tmp_path / "log.csv").write_text("step,reward\n" + "".join(f"{n},{n / 10}\n" for n in range(30)))
    two = [Event(n, {"reward_mean": 1.0 * n}, model_info={"run_id": "ab"[n % 2]}) for n in range(60)]
    write(tmp_path / "two_events.jsonl", two)
    bench = Workbench(Folder(tmp_path))
    rows = judged(bench)
    assert {(row["key"], row["part"]) for row in rows.values()} == {
        ("log.csv", None), ("two_events.jsonl", "a"), ("two_events.jsonl", "b")
    }  # fmt: skip
    ids = [row["id"] for row in rows.values()]
    while (known := bench.answer("metrics", {"runs": ids}))["behind"]:
        time.sleep(0.01)
    assert known["metrics"] == {"reward_mean": 3} and not known["timed"]
    drawn = bench.answer("curves", {"runs": [rows["b"]["id"]], "metrics": ["reward_mean"]})["curves"]["reward_mean"]
    assert numbers_of(drawn[0]["y"]) == [1.0 * n for n in range(1, 60, 2)]


def numbers_of(values: Any) -> list[float]:
    return list(values if not isinstance(values, bytes) else numbers(values).tolist())


def test_curves_lie_over_each_other_and_follow_their_logs(runs: Path, tmp_path: Path, healthy_events: list[Event]) -> None:
    timed = [replace(event, wall_time=1.7e9 + 60.0 * event.step) for event in healthy_events]
    for name in "ab":
        write(tmp_path / f"{name}_events.jsonl", timed[:100] if name == "a" else timed[:50])
    bench = Workbench(Folder(tmp_path))
    ids = {row["key"][0]: row["id"] for row in bench.rows()["rows"]}
    asked = {"runs": list(ids.values()), "metrics": ["reward_mean", "nothing"]}
    known = bench.answer("metrics", {"runs": asked["runs"]})
    assert known["metrics"]["reward_mean"] == 2 and known["timed"] and known["dated"]
    drawn = bench.answer("curves", asked)["curves"]
    assert drawn["nothing"] == []
    lines = {one["series"]: one for one in drawn["reward_mean"]}
    assert numbers_of(lines[ids["a"]]["y"]) == [event.metrics["reward_mean"] for event in timed[:100]]
    write(tmp_path / "b_events.jsonl", timed[50:80])
    bench.table._next_look = 0.0
    bench.table.look()
    by_time = bench.answer("curves", {**asked, "axis": "time"})["curves"]["reward_mean"]
    line = next(one for one in by_time if one["series"] == ids["b"])
    assert numbers_of(line["x"]) == pytest.approx([event.wall_time for event in timed[:80]])
    hour = [1.7e9 + 60.0 * 20, 1.7e9 + 60.0 * 30]
    (part, _) = bench.answer("curves", {**asked, "axis": "time", "span": hour})["curves"]["reward_mean"]
    assert min(numbers_of(part["x"])) == pytest.approx(hour[0]) and max(numbers_of(part["x"])) == pytest.approx(hour[1])
    assert "Expected `axis`" in bench.answer("curves", {**asked, "axis": "/etc/passwd"})["problem"]


def test_groups_are_drawn_as_mean_and_band(tmp_path: Path) -> None:
    for number, level in enumerate((1.0, 3.0, 10.0)):
        write(tmp_path / f"{number}_events.jsonl", [Event(n, {"reward_mean": level}) for n in range(40)])
    bench = Workbench(Folder(tmp_path))
    rows = sorted(bench.rows()["rows"], key=lambda row: str(row["key"]))
    ids = [str(row["id"]) for row in rows]
    groups = {ids[0]: "low", ids[1]: "low", ids[2]: "high"}
    drawn = bench.answer("curves", {"runs": ids, "metrics": ["reward_mean"], "groups": groups})["curves"]["reward_mean"]
    low, high = drawn
    assert (low["series"], low["runs"], high["series"], high["runs"]) == ("low", 2, "high", 1)
    assert set(numbers_of(low["y"])) == {2.0} and set(numbers_of(high["y"])) == {10.0}
    assert (numbers_of(low["low"])[0], numbers_of(low["high"])[0]) == (1.0, 3.0)  # no further than a run has been


def test_runs_are_compared_as_on_the_command_line(runs: Path) -> None:
    bench = Workbench(Folder(runs))
    rows = judged(bench)
    asked = {"runs": [rows["calm1"]["id"], rows["sick"]["id"]]}
    until = time.monotonic() + 60
    while (answer := bench.answer("compare", asked)).get("pending") and time.monotonic() < until:
        time.sleep(0.02)
    assert [(one["name"], one["verdict"]) for one in answer["groups"]] == [("calm1", "healthy"), ("sick", "critical")]
    assert "learning_rate" in answer["html"] and "sick diverges from calm1 at step" in answer["html"]
    assert "Where each ended" in answer["html"]
    assert bench.answer("compare", asked) is answer or bench.answer("compare", asked) == answer


def test_tags_and_notes_are_kept_beside_the_runs(tmp_path: Path, healthy_events: list[Event]) -> None:
    for name in "ab":
        write(tmp_path / f"{name}_events.jsonl", healthy_events[:30])
    bench = Workbench(Folder(tmp_path))
    one, two = (row["id"] for row in bench.rows()["rows"])
    long = "n" * 5000
    both = {"runs": [one, two], "add": ["good", "<b>\x1b[31m", ""], "remove": [], "note": None}
    assert bench.answer("annotate", both) == {"problem": ""}
    assert bench.answer("annotate", {"runs": [one], "add": [], "remove": ["good"], "note": f"line\n{long}"}) == {"problem": ""}
    kept = {row["id"]: (row["tags"], row["note"]) for row in Workbench(Folder(tmp_path)).rows()["rows"]}
    assert kept[two] == (["good", "<b>"], "") and kept[one][0] == ["<b>"]
    assert kept[one][1].startswith("line\nnnn") and len(kept[one][1]) == 2000
    (tmp_path / NOTES).write_text("{ half")
    answer = bench.answer("annotate", {"runs": [one], "add": ["x"], "remove": [], "note": None})
    assert "cannot be read" in answer["problem"] and (tmp_path / NOTES).read_text() == "{ half"  # nothing is lost
    (tmp_path / NOTES).unlink()
    (tmp_path / ".rldk").rmdir()
    (tmp_path / ".rldk").symlink_to(tmp_path.parent)
    assert "leads out" in bench.answer("annotate", {"runs": [one], "add": ["x"], "remove": [], "note": None})["problem"]


def test_a_small_line_keeps_the_course_of_a_long_run() -> None:
    line = Sparkline()
    for number in range(10_000):
        line.take(float(number))
    values = line.values()
    assert 32 <= len(values) <= 65 and values == sorted(values) and values[0] < 400 and values[-1] > 9_500
