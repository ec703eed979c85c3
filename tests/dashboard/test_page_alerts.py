"""What the page says of a run that goes wrong, recovers, or was accepted as it is; without a browser."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rldk.core.event import Event
from rldk.dashboard import processes
from rldk.dashboard.reader_process import RunReader
from rldk.ingest import read_runs
from rldk.judge.acknowledgements import FILE, Acknowledgement, acknowledge
from rldk.judge.outlook import outlook
from rldk.judge.scan import judge_run
from rldk.report.case import Case

from .conftest import settle, write

pytest.importorskip("streamlit")
pytestmark = pytest.mark.full

ATTACK = "<script>window.pwned=1</script>"
KEY = "mine_events.jsonl"


class LocalClient:
    """Asks a reader in this process, through the same encoding as the pipe."""

    def __init__(self, reader: RunReader) -> None:
        self.folder, self.reader = str(reader.folder.path), reader

    def ask(self, name: str, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = msgspec.msgpack.decode(processes._encode(self.reader.answer(name, arguments)))
        return answer


def look(reader: RunReader, key: str = KEY, **given: Any) -> Any:
    from rldk.dashboard.page.panels import RunView

    settle(reader, key)
    client: Any = LocalClient(reader)
    return RunView(client, key, client.ask("state", key=key), **given)


def broken_reward(run_id: str = "mine", now: float = 0.0) -> list[Event]:
    """A healthy run whose reward is not a number for some rows; a row per minute, so that it counts as live for long."""
    made = []
    for step in range(200):
        reward = float("nan") if 100 <= step < 130 else 1.0 + 0.01 * (step % 7)
        time_ = now - 60 * (200 - step) if now else None
        made.append(Event(step, {"reward_mean": reward, "kl_mean": 0.02, "loss": 0.5}, time_, model_info={"run_id": run_id}))
    return made


def test_the_banner_says_what_since_when_and_what_to_do(reader: RunReader, tmp_path: Path, sick_events: list[Event]) -> None:
    from rldk.dashboard.page.announcements import banner, icon_of, standing_of, title_of
    from rldk.present.palette import LIGHT

    write(tmp_path / KEY, sick_events)
    view = look(reader)
    headline, details = banner(view)
    worst = view.alerts[0]
    assert 'class="banner critical" role="alert"' in headline and "KL" in headline and f"since step {worst.step}" in headline
    assert "The KL penalty is too weak" in headline
    assert "What to do:" in details and worst.advice[:30] in details and f"Last good step: {worst.last_good_step}" in details
    assert standing_of(view) == "critical" and title_of(view).startswith("Critical: ppo-kl_explosion")
    assert LIGHT.critical in icon_of("critical") and LIGHT.good in icon_of("healthy") and LIGHT.soft in icon_of("no_data")


def test_a_live_run_says_how_long_ago(reader: RunReader, tmp_path: Path) -> None:
    from rldk.dashboard.page.announcements import banner

    write(tmp_path / KEY, broken_reward(now=time.time())[:120])
    headline, _ = banner(look(reader))
    assert "since step 101," in headline and " ago" in headline


def test_a_run_that_recovered_says_at_which_step(reader: RunReader, tmp_path: Path) -> None:
    from rldk.dashboard.page.announcements import banner, standing_of, title_of

    write(tmp_path / KEY, broken_reward())
    view = look(reader)
    headline, details = banner(view)
    assert view.alerts == [] and f"recovered at step {view.incidents[-1].recovered_step}" in headline and not details
    assert standing_of(view) == "recovered" and title_of(view) == "Recovered: mine · rldk"


def test_a_healthy_run_has_no_banner(reader: RunReader, tmp_path: Path, healthy_events: list[Event]) -> None:
    from rldk.dashboard.page.announcements import banner, browser_alerts, title_of

    write(tmp_path / KEY, healthy_events)
    view = look(reader)
    assert banner(view) == ("", "") and title_of(view).endswith(" · rldk") and ":" not in title_of(view)
    assert browser_alerts(view)["incidents"] == []


def accept_all(log: Path, events: list[Event], reason: str) -> None:
    result = judge_run(read_runs(log).runs[0])
    for kind in {anomaly.type for anomaly in result.anomalies}:
        acknowledge(log, Acknowledgement(log.name, result.run.run_id, kind, "critical", reason))


def test_what_was_acknowledged_raises_no_alarm_and_is_shown_as_that(
    reader: RunReader, tmp_path: Path, sick_events: list[Event]
) -> None:
    from rldk.dashboard.page.announcements import banner, browser_alerts, standing_of
    from rldk.dashboard.page.summary import worst_incident_card

    log = write(tmp_path / KEY, sick_events)
    accept_all(log, sick_events, f"known {ATTACK}")
    view = look(reader)
    headline, details = banner(view)
    assert "acknowledged" in headline and "known &lt;script&gt;" in headline and ATTACK not in headline and not details
    assert view.alerts == [] and standing_of(view) == "healthy" and browser_alerts(view)["incidents"] == []
    assert view.state["verdict"] == "critical"  # the verdict is what it was
    assert "Acknowledged:</b> known &lt;script&gt;" in worst_incident_card(view)
    (tmp_path / FILE).unlink()
    assert look(reader).alerts


def test_acknowledgements_that_cannot_be_read_or_lie_outside(
    reader: RunReader, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, sick_events: list[Event]
) -> None:
    log = write(tmp_path / KEY, sick_events)
    (tmp_path / FILE).write_text("{")
    assert "cannot be read as acknowledgements" in look(reader).state["problem"]
    (tmp_path / FILE).unlink()
    elsewhere = write(tmp_path_factory.mktemp("outside") / KEY, sick_events)
    accept_all(elsewhere, sick_events, "not here")
    (log.parent / FILE).symlink_to(elsewhere.parent / FILE)
    assert look(reader).alerts


def test_incidents_are_shown_with_the_curves_of_the_report(reader: RunReader, tmp_path: Path, sick_events: list[Event]) -> None:
    from rldk.dashboard.page.panels import evidence_panels, overview_panels

    log = write(tmp_path / KEY, sick_events)
    case = Case(judge_run(read_runs(log).runs[0]))
    view = look(reader)
    for number, incident in enumerate(view.incidents, 1):
        shown = evidence_panels(view, incident, number)
        expected = case.evidence_panels(case.judgement.incidents[number - 1])
        assert [panel.key for panel in shown] == [panel.key for panel in expected]
        marks = [[(mark.label, mark.x) for mark in panel.marks] for panel in (*shown, *expected)]
        assert all(one == marks[0] for one in marks) and ("✓", incident.last_good_step) in marks[0]
        told, moments = view.story(incident), case.story(case.judgement.incidents[number - 1])
        assert [(one.anomaly.type, one.began, one.first) for one in told] == [
            (one.anomaly.type, one.began, one.first) for one in moments
        ]
    first = case.evidence_panels(case.judgement.worst)  # type: ignore[arg-type]
    overview = [panel.key for panel in overview_panels(view)]
    assert overview[: len(first)] == [panel.key for panel in first] and {"reward", "kl", "entropy"} <= set(overview)


def test_a_browser_announces_critical_incidents_of_live_runs_only(
    reader: RunReader, tmp_path: Path, sick_events: list[Event]
) -> None:
    from rldk.dashboard.page.announcements import browser_alerts

    write(tmp_path / KEY, sick_events)
    view = look(reader)
    given = browser_alerts(view)
    critical = [one for one in view.alerts if one.severity == "critical"]
    assert given["live"] and len(given["incidents"]) == len(critical) > 0
    again = browser_alerts(look(reader))
    assert [one["id"] for one in again["incidents"]] == [one["id"] for one in given["incidents"]]
    view.state["live"] = False
    assert browser_alerts(view) == {"live": False, "incidents": []}


def test_the_outlook_is_that_of_the_scan(reader: RunReader, tmp_path: Path, healthy_events: list[Event]) -> None:
    log = write(tmp_path / KEY, healthy_events)
    expected = outlook(judge_run(read_runs(log).runs[0]))
    assert expected and look(reader).ask("outlook") == {"sentences": expected}


def test_runs_are_compared_as_rldk_compare_does(
    reader: RunReader, tmp_path: Path, sick_events: list[Event], healthy_events: list[Event]
) -> None:
    from rldk.comparison import compare_results

    logs = [write(tmp_path / KEY, sick_events), write(tmp_path / "other_events.jsonl", healthy_events)]
    expected = compare_results([judge_run(read_runs(log).runs[0]) for log in logs])
    view = look(reader)
    settle(reader, "other_events.jsonl")
    found = view.client.ask("compare", runs=[[KEY, None], ["other_events.jsonl", None]])
    assert expected.sentences()[0][:60] in found["html"] and "Where each ended" in found["html"]
    assert "no such run" in view.client.ask("compare", runs=[[KEY, None], ["../x", None]])["problem"]


def measured(change: Callable[[int, dict[str, float]], None]) -> list[Event]:
    made = []
    for step in range(200):
        metrics = {"reward_mean": 0.5 + 0.001 * step, "kl_mean": 0.02, "tokens_per_second": 1000.0 + step % 7, "step_time": 2.0}
        change(step, metrics)
        made.append(Event(step, metrics))
    return made


def test_the_machine_shows_what_is_abnormal_first(reader: RunReader, tmp_path: Path) -> None:
    from rldk.dashboard.page.machine import level_rows

    def slow(step: int, metrics: dict[str, float]) -> None:
        metrics["memory_usage"] = 0.5
        if step > 100:
            metrics["tokens_per_second"] = 100.0 + step % 7

    write(tmp_path / KEY, measured(slow))
    view = look(reader)
    (finding,) = [one for one in view.state["machine"] if one["cleared_index"] is None]
    assert finding["type"] == "throughput_drop"
    levels = view.ask("levels", names=["memory_usage", "tokens_per_second", "step_time", "unknown"])["levels"]
    rows = level_rows(levels, [finding])
    assert [row[0] for row in rows] == ["tokens_per_second", "step_time", "memory_usage"]
    assert rows[0][4] == "tokens/s" and "second" in rows[0][5] and rows[0][6].startswith("abnormal since step")
    assert rows[2][1] == "0.5" and rows[2][4] == "share of 1" and rows[2][6] == ""


def test_checkpoints_with_problems_come_first() -> None:
    from rldk.dashboard.page.checkpoints import ordered

    rows = [{"step": str(step), "verdict": verdict} for step, verdict in enumerate(
        ("healthy", "critical", "healthy", "warning", "damaged", "critical", "healthy")
    )]  # fmt: skip
    assert [row["step"] for row in ordered(rows)] == ["5", "1", "4", "3", "6", "2", "0"]


def test_every_problem_of_a_checkpoint_is_explained() -> None:
    from rldk.dashboard.page.checkpoints import PROBLEMS

    page = (Path(__file__).parents[2] / "docs" / "checkpoints.md").read_text().partition("## What is reported")[2]
    listed = re.findall(r"`([a-z_]+)`", page.partition("## ")[0])
    assert len(listed) > 8 and set(listed) == PROBLEMS.keys()


def test_measures_have_units_and_what_is_abnormal_comes_first() -> None:
    from rldk.dashboard.page.analytics import measured as rows_of

    rows = rows_of({"step": 3, "current_kl": 0.5, "controller_oscillation": 0.9, "coef_stuck": True, "kl_health_score": 0.1})
    assert [row[0] for row in rows] == ["controller oscillation", "coef stuck", "current KL"]
    assert rows[0][1:3] == ("0.9", "of 1") and rows[2][1:4] == ("0.5", "nats", "logged last") and rows[0][4] == "critical"


def test_of_each_type_the_most_severe_finding_is_shown_critical_ones_first() -> None:
    from rldk.dashboard.page.analytics import most_severe

    found = [{"type": kind, "severity": severity, "step": step} for step, (kind, severity) in enumerate(
        [("kl_trend", "warning"), ("kl_explosion", "warning"), ("kl_explosion", "critical"), ("target", "warning")]
    )]  # fmt: skip
    assert [one["step"] for one in most_severe(found)] == [2, 0, 3]


def test_hostile_names_stay_text(reader: RunReader, tmp_path: Path) -> None:
    from rldk.dashboard.page.announcements import banner, browser_alerts, title_of

    write(tmp_path / KEY, broken_reward(run_id=f"\x1b[31m{ATTACK}")[:120])
    view = look(reader)
    assert ATTACK not in "".join(banner(view)) and "\x1b" not in title_of(view) + json.dumps(browser_alerts(view))
