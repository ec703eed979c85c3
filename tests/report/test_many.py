"""Pages about many runs: the table, what is drawn at first, groups, the index instead of judging, and acknowledged findings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rldk
from rldk.cli.main import main
from rldk.core.event import Event
from rldk.present.plots.source import RunSource
from rldk.report import Case, markdown, page
from rldk.report.entry import entries_of
from rldk.report.overlay import Beginning, differ_in_length, grouping_choices, long_runs, overlays_of
from rldk.testing.streams import faulty, healthy

from .conftest import write_log

RUNS = 30


def settings(number: int) -> dict[str, Any]:
    return {"learning_rate": (1e-6, 1e-5)[number % 2], "seed": number // 2 % 3, "output_dir": f"out/{number}"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty short runs, of which one is critical and one is thirty times as long as the others."""
    folder = tmp_path_factory.mktemp("store")
    for number in range(RUNS):
        if number == 7:
            events = faulty("entropy_explosion", "grpo", steps=120, onset=40, seed=7)
        else:
            events = healthy("grpo", 900 if number == 3 else 30, seed=number)
        events[0].model_info["config"] = settings(number)
        write_log(folder / f"run{number:02}.jsonl", events)
    return folder


@pytest.fixture(scope="module")
def content(store: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page about them all."""
    return report(store, tmp_path_factory.mktemp("page") / "r.html")


def report(folder: Path, target: Path, *options: str) -> str:
    assert main(["report", str(folder), "-o", str(target), *options]) == 0
    return target.read_text()


def block(content: str, name: str) -> Any:
    """What is in a JSON element of the page."""
    return json.loads(re.search(rf'id="{name}">(.*?)</script>', content)[1])  # type: ignore[index]


def figures(content: str) -> list[dict[str, Any]]:
    return [json.loads(found) for found in re.findall(r'<script type="application/json">(.*?)</script>', content)]


def test_every_run_is_in_the_table_and_the_worst_are_shown_in_detail(content: str) -> None:
    assert content.count("<tr data-run=") == RUNS and content.count('class="run"') == 24
    first = re.search(r'<tr data-run="0".*?</tr>', content, re.DOTALL)
    assert first is not None and "run07" in first[0] and 'class="badge critical"' in first[0]
    assert "1 critical" in content and f"24 of {RUNS} runs" in unescape(content)
    assert block(content, "runs-data")["first"] == 5 and len(content) < 1_500_000
    assert '<th scope="col" data-key="learning rate"' in content and "output" not in content.split("<tbody>")[0].split("<main")[1]


def test_all_runs_can_be_drawn_and_five_are(content: str) -> None:
    reward = figures(content)[0]
    assert {curve["run"] for curve in reward["curves"]} == set(range(RUNS)), "those without details have thinned curves"
    drawn = re.search(r'<svg [^>]*aria-label="Reward.*?</svg>', content, re.DOTALL)
    assert drawn is not None
    assert set(re.findall(r'stroke="var\(--rldk-s(\d+)\)"', drawn[0])) == {"0", "1", "2", "3", "4"}


def test_the_axis_is_logarithmic_where_one_of_the_runs_shown_is_far_longer(case_of: Callable[..., Case]) -> None:
    short = [case_of([Event(n, {"reward_mean": 0.1 * n, "kl_mean": 0.1}) for n in range(30)], f"s{i}") for i in range(3)]
    long = case_of([Event(n, {"reward_mean": 0.1 * n, "kl_mean": 0.1}) for n in range(900)], "long")
    assert not overlays_of(entries_of(short), {}, 50)[0].drawn.x_log
    entries = entries_of([*short, long])
    overlay = overlays_of(entries, {}, 50)[0]
    assert overlay.drawn.x_log
    (curve,) = [curve for curve in overlay.panel.curves if curve.run == "long"]
    assert (curve.x < 30).sum() >= 8, "where the others are, the long one has points too"
    ticks = re.findall(r'class="tick" x="[\d.]+" y="[\d.]+" text-anchor="middle"[^>]*>([^<]+)<', page([*short, long]))
    assert {"1", "10", "100"} <= set(ticks)


def test_runs_are_grouped_by_a_setting_or_by_all_but_the_seed(store: Path, tmp_path: Path) -> None:
    content = report(store, tmp_path / "r.html", "--group-by", "config.lr")
    given = block(content, "runs-data")
    assert given["group"] == "lr" and given["groupings"] == ["lr", "configuration", "learning_rate", "seed"]
    reward = figures(content)[0]
    assert [curve["name"] for curve in reward["groups"]["lr"]] == ["lr=1e-06 (15 runs)", "lr=1e-05 (15 runs)"]
    assert all(curve["bands"] for curve in reward["groups"]["lr"]) and len(reward["groups"]["seed"]) == 3
    assert "lr=1e-05 (15 runs)" in content, "drawn without a script, too"


def test_a_group_that_no_run_has_is_an_error(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(store), "-o", str(tmp_path / "r.html"), "--group-by", "config.learning_rat"]) == 2
    assert "Did you mean" in capsys.readouterr().err


def test_a_setting_that_is_different_in_each_run_is_no_group(case_of: Callable[..., Case]) -> None:
    cases = []
    for number in range(4):
        events = [Event(n, {"reward_mean": 0.1 * n, "kl_mean": 0.1}) for n in range(9)]
        events[0].model_info["config"] = {"seed": number, "note": f"n{number}"}
        cases.append(case_of(events, f"r{number}"))
    assert grouping_choices(entries_of(cases)) == {}


@pytest.mark.full
def test_with_an_index_only_what_has_changed_is_judged(
    store: Path, content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rldk.fleet import work

    assert main(["index", str(store)]) == 0
    read: list[str] = []
    real = work.read_log
    monkeypatch.setattr(work, "read_log", lambda log, *rest: (read.append(log.path.name), real(log, *rest))[1])
    capsys.readouterr()
    indexed = report(store, tmp_path / "indexed.html")
    assert read == [] and f"{RUNS} logs from the index, 0 judged" in capsys.readouterr().out
    assert table_of(indexed) == table_of(content), "it says the same as without an index"
    write_log(store / "run29.jsonl", faulty("entropy_explosion", "grpo", steps=120, onset=40, seed=9))
    changed = report(store, tmp_path / "changed.html")
    assert read == ["run29.jsonl"] and "2 critical" in changed


def test_a_run_that_fails_in_detail_stays_in_the_table(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rldk.report import gather

    real = gather.judge_report

    def failing(given: Any, *rest: Any) -> Any:
        if given.path.name == "run07.jsonl":
            raise TypeError("nobody expected this")
        return real(given, *rest)

    monkeypatch.setattr(gather, "judge_report", failing)
    rows = table_of(report(store, tmp_path / "r.html"))
    assert len(rows) == RUNS and sum("critical" in row for row in rows) > 0


def table_of(content: str) -> list[str]:
    rows = re.findall(r"<tr data-run.*?</tr>", content, re.DOTALL)
    return [re.sub(r"data-sort=\"[^\"]*\"|<polyline[^>]*>", "", row) for row in rows]


def test_acknowledged_findings_are_shown_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path / "broken_events.jsonl", faulty("entropy_explosion", "grpo", steps=120, onset=40, seed=7))
    main(["scan", str(log), "--json"])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    cause = run["incidents"][0]["cause"]
    reason = "an <b>ablation</b> without a penalty"
    for incident in run["incidents"]:
        assert main(["ack", str(log), incident["cause"], "--reason", reason, "--until", "30d"]) == 0
    content = report(log, tmp_path / "r.html", "--markdown", str(tmp_path / "r.md"))
    assert "an &lt;b&gt;ablation&lt;/b&gt; without a penalty" in content and "incident critical acknowledged" in content
    assert re.search(r"Acknowledged until \d{4}-\d\d-\d\d", content)
    summary = (tmp_path / "r.md").read_text()
    assert "| **critical** (acknowledged) |" in summary and "(acknowledged)\n\n**Acknowledged until" in summary
    assert "an \\<b\\>ablation" in summary and cause
    assert main(["report", str(log), "-o", str(tmp_path / "r.html"), "--fail-on", "critical"]) == 0


def test_among_many_runs_an_acknowledged_one_is_marked_in_the_table(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    main(["scan", str(store / "run07.jsonl"), "--json"])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    for incident in run["incidents"]:
        main(["ack", str(store / "run07.jsonl"), incident["cause"], "--reason", "known"])
    content = report(store, tmp_path / "r.html")
    row = next(row for row in re.findall(r"<tr data-run.*?</tr>", content, re.DOTALL) if "run07" in row)
    (store / "rldk_acks.json").unlink()
    assert '<span class="tag">acknowledged</span>' in row


def test_the_summary_counts_the_runs_that_it_does_not_tell_of(cases: dict[str, Case]) -> None:
    others = [entry.row for entry in entries_of([cases["healthy"]])]
    assert "And 2 more runs: 2 healthy." in markdown([cases["broken"]], others=others * 2)


def test_a_run_that_is_far_longer_asks_for_another_axis() -> None:
    assert differ_in_length([100, 100, 120, 3000]) and not differ_in_length([100, 300, 400, 200])
    assert long_runs([100, 100, 120, 3000]) == [False, False, False, True] and not differ_in_length([0, 500])


def test_the_beginning_of_a_long_run_has_many_points(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(b"".join(Event(n, {"reward_mean": float(n % 7)}).to_json() + b"\n" for n in range(9000)))
    source = RunSource(rldk.load(path)[0])
    plain, _ = source.points(["reward_mean"], 30)
    x, (y,) = Beginning(source, 0, 9000).points(["reward_mean"], 30)
    assert (plain < 100).sum() <= 3 and (x < 100).sum() >= 8 and (np.diff(x) > 0).all()
    assert x[-1] == plain[-1] == 8999 and (y == x % 7).all(), "each value belongs to its step"
