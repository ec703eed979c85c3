"""Messages to people: one per incident, followed up, delivered when the service is back, and harmless when it is not."""

from __future__ import annotations

import json
import logging
import os
import stat
import sys
import threading
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from email.message import Message
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from servers import WebServer

from rldk.core.anomaly import Anomaly
from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.monitor import Command, Desktop, Discord, Email, Monitor, Ntfy, Slack, Teams, Webhook, notifications
from rldk.monitor.outputs import notifications as base
from rldk.monitor.outputs.incident_messages import IncidentMessages
from rldk.monitor.outputs.web_requests import retry_in

pytestmark = pytest.mark.usefixtures("quick")


def watched(output: Any, rewards: list[float]) -> Monitor:
    """A run with a limit of 1 on the reward, so that it is sick while the reward is above."""
    with Monitor(run_id="run", actions=[output], limits={"reward_mean": 1.0}) as monitor:
        for step, reward in enumerate(rewards):
            monitor.observe(Event(step, {"reward_mean": reward, "kl_mean": 0.1}))
        idle(output)
    return monitor


def idle(output: Any) -> None:
    """Wait until everything was sent."""
    done = threading.Event()
    if output._worker._thread is not None:
        output._worker.submit(done.set)
        assert done.wait(20)


SICK_THEN_WELL = [2.0] * 4 + [0.5] * 12


def test_slack_gets_one_message_per_incident_and_one_when_it_is_over(server, monkeypatch):
    monkeypatch.setenv("RLDK_SLACK_URL", f"{server.url}/services/T0/secret")
    watched(Slack("warning"), SICK_THEN_WELL)
    texts = [request.body["text"] for request in server.got]
    assert len(texts) == 2 and "of run:" in texts[0] and "What to do:" in texts[0] and texts[1].endswith("(over)")


def test_a_slack_bot_edits_its_message(server, monkeypatch):
    monkeypatch.setenv("RLDK_SLACK_TOKEN", "xoxb-1")
    monkeypatch.setenv("RLDK_SLACK_CHANNEL", "#training")
    monkeypatch.setattr(Slack, "api", server.url)
    watched(Slack("warning"), SICK_THEN_WELL)
    first, second = (request for request in server.got if "/chat." in request.path)
    assert (first.path, second.path) == ("/chat.postMessage", "/chat.update")
    assert first.headers["Authorization"] == "Bearer xoxb-1" and first.body["channel"] == "#training"
    assert (second.body["channel"], second.body["ts"]) == ("C1", "7.1")


def test_discord_edits_its_message_and_mentions_nobody(server, monkeypatch):
    monkeypatch.setenv("RLDK_DISCORD_URL", f"{server.url}/api/webhooks/1/secret")
    watched(Discord("warning"), SICK_THEN_WELL)
    new, edit = server.got
    assert (new.method, new.path) == ("POST", "/api/webhooks/1/secret?wait=true")
    assert new.body["allowed_mentions"] == {"parse": []}
    assert (edit.method, edit.path) == ("PATCH", "/api/webhooks/1/secret/messages/42")


def test_teams_gets_a_card(server, monkeypatch):
    monkeypatch.setenv("RLDK_TEAMS_URL", f"{server.url}/workflow")
    watched(Teams("warning"), [2.0] * 4)
    card = server.got[0].body["attachments"][0]
    assert card["contentType"].endswith("card.adaptive") and "of run:" in card["content"]["body"][0]["text"]


def test_mail_is_sent_again_where_the_server_refuses_for_now_and_answered_when_it_is_over(smtp):
    smtp.refuse.append("451 try later")
    watched(Email("warning"), SICK_THEN_WELL)
    first, reply = smtp.mails
    assert first["Subject"].startswith("rldk: ") and first["To"] == "me@example.org, you@example.org"
    assert "What to do:" in first.get_body(("plain",)).get_content()
    assert reply["Subject"].startswith("Re: rldk") and reply["In-Reply-To"] == first["Message-ID"] != reply["Message-ID"]


def test_a_password_is_not_sent_in_the_clear(smtp, monkeypatch, caplog):
    monkeypatch.setenv("RLDK_SMTP_URL", os.environ["RLDK_SMTP_URL"].replace("smtp://", "smtp://me:hunter2@"))
    with caplog.at_level(logging.WARNING):
        monitor = watched(Email("warning"), [2.0] * 4)
    assert smtp.mails == [] and "email" in monitor.guard.broken and "hunter2" not in caplog.text


def test_the_desktop_is_told_by_its_own_program(tmp_path: Path, monkeypatch):
    program = tmp_path / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {tmp_path}/said\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    watched(Desktop("warning"), [2.0] * 4)
    assert "of run:" in (tmp_path / "said").read_text()


@pytest.mark.parametrize(
    "answers",
    [[503, 500, 502], [429, 429], [408], ["cut", "cut"], ["hang", 500], ["slow"], ["drip"]],
    ids=lambda answers: "-".join(map(str, answers)),
)
def test_a_message_is_delivered_once_when_the_service_is_back(server, answers):
    server.answers = list(answers)
    monitor = watched(Webhook(server.url, "warning", timeout=0.4), SICK_THEN_WELL)
    ids = [request.id for request in server.got]
    assert [request.body["state"] for request in server.got] == ["new", "over"] and monitor.guard.broken == {}
    assert len(set(ids)) == 2 and {request.id for request in server.refused} <= {ids[0]}
    assert [request.body["id"] for request in server.got] == ids
    assert len({request.body["incident"] for request in server.got}) == 1


def test_a_service_that_is_down_gets_the_message_when_it_is_back():
    gone = WebServer()
    gone.close()
    output = Webhook(gone.url, "warning", timeout=0.4)
    with Monitor(run_id="run", actions=[output], limits={"reward_mean": 1.0}) as monitor:
        monitor.observe(Event(0, {"reward_mean": 2.0}))
        back = WebServer(gone.port)
        try:
            idle(output)
            assert [request.body["state"] for request in back.got] == ["new"]
        finally:
            back.close()
    assert monitor.guard.broken == {}


def test_slack_is_asked_again_where_it_answers_that_it_cannot_now(server, monkeypatch):
    monkeypatch.setenv("RLDK_SLACK_TOKEN", "xoxb-1")
    monkeypatch.setenv("RLDK_SLACK_CHANNEL", "#training")
    monkeypatch.setattr(Slack, "api", server.url)
    refusals = [{"ok": False, "error": "internal_error"}, {"ok": False, "error": "ratelimited"}]
    monkeypatch.setattr(server, "reply", lambda _: refusals.pop(0) if refusals else {"ok": True, "ts": "7.1", "channel": "C1"})
    monitor = watched(Slack("warning"), [2.0] * 4)
    assert [request.path for request in server.got][:3] == ["/chat.postMessage"] * 3 and monitor.guard.broken == {}
    assert len({request.id for request in server.got[:3]}) == 1


def test_a_mail_server_that_hangs_up_gets_the_same_mail_again(smtp):
    smtp.refuse.append("")
    monitor = watched(Email("warning"), [2.0] * 4)
    assert [mail["X-Rldk-Id"].endswith("-0/1") for mail in smtp.mails] == [True] and monitor.guard.broken == {}


def test_every_service_broken_at_once_costs_no_event(server, monkeypatch, tmp_path: Path):
    """Down, hanging, refusing: the log has every event, and the training is told of each service once."""
    for name, path in (("SLACK", "a"), ("DISCORD", "b"), ("TEAMS", "c"), ("NTFY", "d/topic")):
        monkeypatch.setenv(f"RLDK_{name}_URL", f"{server.url}/{path}")
    monkeypatch.setenv("RLDK_SMTP_URL", "smtp://127.0.0.1:9")
    monkeypatch.setenv("RLDK_MAIL_TO", "me@example.org")
    server.answers = ["hang", 500, 429, 404, "cut"] * 400
    monkeypatch.setattr(base, "_CLOSE_SECONDS", 0.1)
    actions = [*notifications(["slack", "discord", "teams", "ntfy", "email", server.url, "http://127.0.0.1:9/x"], "warning")]
    actions.append(Command([sys.executable, "-c", "raise SystemExit(3)"], "warning"))
    with Monitor(tmp_path, run_id="run", actions=actions, limits={"reward_mean": 1.0}) as monitor:
        for step in range(300):
            monitor.observe(Event(step, {"reward_mean": 2.0 if step % 20 < 10 else 0.5}))
    steps = [json.loads(line)["step"] for line in (tmp_path / "run_events.jsonl").read_text().splitlines()]
    assert steps == list(range(300)) and len(monitor.anomalies) >= 15


def test_a_message_for_which_the_queue_has_no_room_is_due_again(server, monkeypatch):
    monkeypatch.setattr(base, "_MAX_WAITING", 1)
    output = Webhook(server.url, "warning")
    blocked = threading.Event()
    output._worker.submit(blocked.wait, 20)
    while output._worker._calls:  # until the thread has taken it
        threading.Event().wait(0.005)
    runs = ("one", "other")
    for name in runs:
        output.follow(name, [anomaly(10)])
    blocked.set()
    for expected in (1, 2):
        waited = 0
        while (len(server.got) < expected or output._worker._calls) and (waited := waited + 1) < 2000:
            threading.Event().wait(0.01)
        assert len({request.body["incident"] for request in server.got}) == len(server.got) == expected
        for name in runs:
            output.follow(name, [anomaly(10)])
    output.close()


def test_a_refusal_for_good_is_said_once_without_the_address(server, monkeypatch, caplog):
    monkeypatch.setenv("RLDK_SLACK_URL", f"{server.url}/services/very-secret")
    server.answers = [404] * 10
    with caplog.at_level(logging.WARNING):
        monitor = watched(Slack("warning"), [2.0] * 4)
    assert "slack" in monitor.guard.broken and "404" in caplog.text and "very-secret" not in caplog.text


def test_a_dead_service_costs_no_event(monkeypatch):
    monkeypatch.setenv("RLDK_SLACK_URL", "http://127.0.0.1:9/nobody-listens")
    output = Slack("warning")
    with Monitor(run_id="run", actions=[output], limits={"reward_mean": 1.0}) as monitor:
        for step in range(50):
            monitor.observe(Event(step, {"reward_mean": 2.0}))
        assert monitor.result().engine.events == 50


@pytest.mark.parametrize(
    ("make", "said"),
    [(lambda: notifications("slak"), "slack"), (Slack, "RLDK_SLACK_URL"), (Email, "RLDK_SMTP_URL"), (Ntfy, "RLDK_NTFY_URL")],
)
def test_what_is_not_set_up_is_refused_with_what_to_do(make: Callable[[], Any], said: str):
    with pytest.raises(UsageError, match=said):
        make()


def test_names_and_addresses_become_notifications(monkeypatch):
    monkeypatch.setenv("RLDK_DISCORD_URL", "https://discord.example/1")
    assert [type(one) for one in notifications(["discord", "https://example.org/hook"])] == [Discord, Webhook]


def test_a_message_holds_no_settings_of_the_run(server):
    """Neither the configuration nor the learning rate of the moment, which anomalies carry for the advice in reports."""
    hook = Webhook(server.url, "warning")
    settings = {"learning_rate": 0.000123, "model_name": "secret-model"}
    with Monitor(run_id="run", actions=[hook], limits={"reward_mean": 1.0}, run_config=settings) as monitor:
        monitor.observe(Event(0, {"reward_mean": 2.0, "lr": 0.000123, "kl_coef": 0.0777}, notes=["a prompt"]))
        idle(hook)
    assert monitor.anomalies[0].knobs and server.got[0].body["anomalies"][0]["knobs"] == {}
    sent = json.dumps(server.got[0].body)
    assert not [word for word in ("000123", "0777", "secret-model", "a prompt") if word in sent]


def anomaly(number: int, severity: str = "warning", cleared: int | None = None, kind: str = "kl_explosion") -> Anomaly:
    said = ("KL is high.", 1.0, 0.5, "Lower it.")
    return Anomaly(kind, severity, "kl_schedule", number, number, *said, number, cleared_index=cleared)


def test_an_incident_is_followed_up_when_it_grows_and_not_otherwise():
    messages = IncidentMessages(("warning", "critical"))
    (first,) = messages.due("run", [anomaly(10)])
    messages.told(first)
    assert (first.state, first.number, messages.due("run", [anomaly(10)])) == ("new", 1, [])
    (second,) = messages.due("run", [anomaly(10), anomaly(12, "critical")])
    assert (second.state, second.id, second.number, second.severity) == ("grown", first.id, 2, "critical")
    messages.told(second)
    (third,) = messages.due("run", [anomaly(10, cleared=30), anomaly(12, "critical", cleared=31)])
    assert third.state == "over" and third.text == third.headline


def test_an_incident_that_is_not_severe_enough_or_already_over_is_not_told():
    messages = IncidentMessages(("critical",))
    assert messages.due("run", [anomaly(10)]) == []
    assert IncidentMessages(("warning",)).due("run", [anomaly(10, cleared=12)]) == []


@pytest.mark.parametrize(
    ("asked", "wait"), [("7", 7.0), ("0", 2.0), ("600", 60.0), ("", 2.0), ("soon", 2.0), ("-5", 2.0), (30.0, 30.0), (-30.0, 2.0)]
)
def test_a_service_may_say_when_to_try_again(asked: str | float, wait: float) -> None:
    """By a number of seconds, or by a date."""
    if isinstance(asked, float):
        asked = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=asked), usegmt=True)
    headers = Message()
    headers["Retry-After"] = asked
    found = retry_in(HTTPError("https://example.org", 429, "", headers, None), 2.0)
    assert found is not None and wait - 2.0 < found <= wait
