"""The page with what nobody wishes for: hostile text, damaged files, runs with hardly anything in them."""

from __future__ import annotations

import json
import os
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rldk.core.event import Event
from rldk.dashboard import Dashboard

from .browser import Visit, chromium
from .conftest import write

pytestmark = pytest.mark.full

ATTACK = "<img src=x onerror='window.pwned=1'><script>window.pwned=2</script>\x1b[31m$\\alert(1)$ [x](javascript:alert(2)) :red[y"
NAME = "<img src=x onerror=window.pwned=3>_events.jsonl"
SECRET = "the-secret-that-lies-outside"


def hostile() -> list[Event]:
    events = []
    for step in range(60):
        event = Event(step, {"reward_mean": 0.1 * step, ATTACK: 1.0 * step}, model_info={"run_id": ATTACK})
        events.append(event)
    events[3].notes = [ATTACK, "M" * 1_000_000]
    events[4].extra["samples"] = [{"prompt": ATTACK, "completion": ATTACK + "x" * 1_000_000, "reward": 1.0}]
    return events


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("around")
    (root / "secret.jsonl").write_text(f'{{"step": 1, "metrics": {{"{SECRET}": 1.0}}}}\n')
    runs = root / "runs"
    write(runs / NAME, hostile())
    alerts = runs / NAME.replace("_events.jsonl", "_alerts.json")
    alerts.write_text('[{"step": 1, "message": "<script>window.pwned=4</script>"}]')
    write(runs / "one_events.jsonl", [Event(7, {"reward_mean": 0.5})])
    write(runs / "plain_events.jsonl", [Event(n, {"my_number": float(n % 7)}) for n in range(40)])
    write(runs / "half_events.jsonl", [Event(n, {"reward_mean": 1.0}) for n in range(9)])
    with (runs / "half_events.jsonl").open("ab") as file:
        file.write(b'not json\n{"step": 9, "metr')
    (runs / "empty_events.jsonl").touch()
    (runs / "broken_events.jsonl").write_bytes(b"\x00\xff\xfe" * 2000)
    (runs / "cut_events.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00garbage")
    (runs / "link_events.jsonl").symlink_to(root / "secret.jsonl")
    _write_what_is_not_text(runs)
    return runs


def _write_what_is_not_text(runs: Path) -> None:
    """Names, keys, ids and samples that are not Unicode, steps and numbers beyond 64 bits, and a pipe."""
    halves = [
        {"step": n, "metrics": {"reward_mean": 0.1 * n, "\ud800": 1.0}, "model_info": {"run_id": "half\udfff"},
         "samples": [{"prompt": "\ud83d", "completion": "x"}]} for n in range(9)
    ]  # fmt: skip
    lines = [json.dumps(line) for line in halves] + [f'{{"step": {10**30}, "metrics": {{"reward_mean": {10**400}}}}}']
    name = Path(os.fsdecode(os.fsencode(runs) + b"/\xff_events.jsonl"))
    name.write_text("\n".join(lines) + "\n")
    alerts = [{"step": 10**30, "message": "\ud800 kl", "value": 10**400}]
    name.with_name(name.name.replace("events.jsonl", "alerts.json")).write_text(json.dumps(alerts))
    os.mkfifo(runs / "pipe_[x](http:..y)_events.jsonl")


@pytest.fixture(scope="module")
def visits(folder: Path) -> Iterator[tuple[Any, str]]:
    with chromium() as browser, Dashboard(folder, port=0) as dashboard:
        yield browser, dashboard.url


def open_run(visits: tuple[Any, str], key: str, wait: str) -> Visit:
    return Visit(*visits).go(f"?run={urllib.parse.quote(key)}", wait)


def test_hostile_text_is_text_and_does_nothing(visits: tuple[Any, str]) -> None:
    visit = open_run(visits, NAME, "[data-rldk=header]")
    assert "<img src=x onerror" in visit.text("[data-rldk=header]")
    visit.view("Samples")
    visit.page.wait_for_selector("[data-rldk=sample]")
    shown = visit.text("[data-rldk=sample]")
    assert "<script>window.pwned=2</script>" in shown and "Cut at 4000 characters" in shown
    assert len(shown) < 10_000 and "\x1b" not in shown
    visit.view("Alerts")
    visit.page.get_by_text("Notes in the log").wait_for()
    assert "<script>window.pwned=4</script>" in visit.text()
    visit.view("Curves")
    visit.page.wait_for_selector(".js-plotly-plot .main-svg")
    assert visit.page.locator("[data-rldk=first]").count() == 1  # it was in the first answer as well
    assert visit.page.evaluate("() => window.pwned === undefined")
    assert visit.page.locator("img[src=x]").count() == 0
    assert visit.page.locator("a[href^='javascript:']").count() == 0
    visit.check()
    visit.close()


def test_odd_runs_get_a_helpful_page(visits: tuple[Any, str]) -> None:
    visit = Visit(*visits)
    for key, wait, shown in (
        ("one_events.jsonl", "[data-rldk=header]", "Only 1 event: too few to judge"),
        ("plain_events.jsonl", ".js-plotly-plot .main-svg", "my_number"),
        ("half_events.jsonl", "[data-rldk=header]", "line 10: not JSON"),
    ):
        visit.go(f"?run={urllib.parse.quote(key)}", wait)
        visit.page.get_by_text(shown).first.wait_for()
        visit.check()
    visit.close()


def test_a_file_that_is_not_a_log_is_not_offered(visits: tuple[Any, str]) -> None:
    visit = Visit(*visits)
    for key in ("empty_events.jsonl", "broken_events.jsonl", "cut_events.jsonl.gz"):
        visit.go(f"?run={urllib.parse.quote(key)}", "[data-rldk=header]")
        visit.check()
    visit.page.get_by_test_id("stSelectbox").first.locator("input").click()
    visit.page.get_by_role("option").first.wait_for()
    assert sorted(visit.page.get_by_role("option").all_inner_texts())[1:] == ["\\udcff", "half", "one", "plain"]
    visit.close()


def test_what_is_not_text_is_shown_and_what_is_no_file_is_listed(visits: tuple[Any, str]) -> None:
    visit = open_run(visits, "\\udcff_events.jsonl", ".js-plotly-plot .main-svg")
    assert "half\\udfff" in visit.text("[data-rldk=header]") or "half?" in visit.text("[data-rldk=header]")
    visit.page.get_by_text("1 skipped: pipe_[x](http:..y)_events.jsonl is a pipe").wait_for()
    for view, shown in (("Samples", "[data-rldk=sample]"), ("Alerts", "text=Alerts written by the run itself")):
        visit.view(view, shown)
        visit.check()
    visit.close()


def test_nothing_outside_of_the_folder_can_be_had(visits: tuple[Any, str], folder: Path) -> None:
    visit = open_run(visits, "../secret.jsonl", "section[data-testid=stSidebar] .rldk")
    visit.page.get_by_text("outside this folder").wait_for()
    visit.page.wait_for_selector("[data-rldk=header], [data-rldk=message]")
    assert SECRET not in visit.text()
    visit.check()
    visit.close()
    for path in ("?run=../secret.jsonl", "?run=link_events.jsonl", "secret.jsonl",
                 "../secret.jsonl", "%2e%2e/secret.jsonl", "app/static/../../secret.jsonl",
                 f"media/..{folder.parent}/secret.jsonl", f"component/rldk/{folder.parent}/secret.jsonl",
                 f"_stcore/component/{folder.parent}/secret.jsonl"):  # fmt: skip
        try:
            with urllib.request.urlopen(f"{visits[1]}/{path}", timeout=10) as answer:
                assert SECRET.encode() not in answer.read()
        except urllib.error.HTTPError as error:
            assert error.code in (400, 403, 404)
