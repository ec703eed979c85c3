"""Messages to people: one per incident, followed up, delivered when the service is back, and harmless when it is not."""

from __future__ import annotations

import json
import logging
import os
import socketserver
import stat
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from rldk.core.anomaly import Anomaly
from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.monitor import Desktop, Discord, Email, Monitor, Ntfy, Slack, Teams, Webhook, notifications
from rldk.monitor.outputs import notifications as base
from rldk.monitor.outputs.incident_messages import IncidentMessages


class Server:
    """A web server that notes what it is sent, and answers as it is told: a status, or a function of the request."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str, Any, dict[str, str]]] = []
        self.answers: list[int] = []
        self.body: dict[str, Any] = {"ok": True, "ts": "7.1", "channel": "C1", "id": "42"}
        server = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status = server.answers.pop(0) if server.answers else 200
                if status == 200:
                    server.got.append((self.command, self.path, given, dict(self.headers)))
                self.send_response(status)
                self.send_header("Retry-After", "0")
                self.end_headers()
                self.wfile.write(json.dumps(server.body).encode())

            do_POST = do_PATCH = answer

            def log_message(self, *_: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever)
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_APART", 0.0)
    monkeypatch.setattr(base, "_FIRST_PAUSE", 0.01)


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
    texts = [given["text"] for _, _, given, _ in server.got]
    assert len(texts) == 2 and "of run:" in texts[0] and "What to do:" in texts[0] and texts[1].endswith("(over)")


def test_a_slack_bot_edits_its_message(server, monkeypatch):
    monkeypatch.setenv("RLDK_SLACK_TOKEN", "xoxb-1")
    monkeypatch.setenv("RLDK_SLACK_CHANNEL", "#training")
    monkeypatch.setattr(Slack, "api", server.url)
    watched(Slack("warning"), SICK_THEN_WELL)
    (_, first, new, headers), (_, second, edit, _) = server.got
    assert (first, second) == ("/chat.postMessage", "/chat.update") and headers["Authorization"] == "Bearer xoxb-1"
    assert new["channel"] == "#training" and (edit["channel"], edit["ts"]) == ("C1", "7.1")


def test_discord_edits_its_message_and_mentions_nobody(server, monkeypatch):
    monkeypatch.setenv("RLDK_DISCORD_URL", f"{server.url}/api/webhooks/1/secret")
    watched(Discord("warning"), SICK_THEN_WELL)
    (post, new, body, _), (patch, edit, _, _) = server.got
    assert (post, new) == ("POST", "/api/webhooks/1/secret?wait=true") and body["allowed_mentions"] == {"parse": []}
    assert (patch, edit) == ("PATCH", "/api/webhooks/1/secret/messages/42")


def test_teams_gets_a_card(server, monkeypatch):
    monkeypatch.setenv("RLDK_TEAMS_URL", f"{server.url}/workflow")
    watched(Teams("warning"), [2.0] * 4)
    card = server.got[0][2]["attachments"][0]
    assert card["contentType"].endswith("card.adaptive") and "of run:" in card["content"]["body"][0]["text"]


def test_ntfy_gets_topic_title_and_priority(server, monkeypatch):
    monkeypatch.setenv("RLDK_NTFY_URL", f"{server.url}/my-topic")
    monkeypatch.setenv("RLDK_NTFY_TOKEN", "tk")
    watched(Ntfy("warning"), [2.0] * 4)
    _, path, body, headers = server.got[0]
    assert (path, body["topic"]) == ("/", "my-topic") and "of run:" in body["title"] and headers["Authorization"] == "Bearer tk"


class Smtp(socketserver.StreamRequestHandler):
    """As much of a mail server as a client needs."""

    mails: ClassVar[list[str]] = []
    refuse: ClassVar[list[str]] = []

    def handle(self) -> None:
        self.say("220 here")
        while line := self.rfile.readline().decode().strip():
            word = line[:4].upper()
            if word == "DATA":
                self.say("354 go on")
                mail = ""
                while (part := self.rfile.readline().decode()) != ".\r\n":
                    mail += part
                if self.refuse:
                    self.say(self.refuse.pop())
                    continue
                self.mails.append(mail)
            self.say("221 bye" if word == "QUIT" else "250 ok")
            if word == "QUIT":
                return

    def say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@pytest.fixture
def smtp(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Smtp]]:
    Smtp.mails, Smtp.refuse = [], []
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Smtp) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("RLDK_SMTP_URL", f"smtp://127.0.0.1:{server.server_address[1]}")
        monkeypatch.setenv("RLDK_MAIL_TO", "me@example.org, you@example.org")
        yield Smtp
        server.shutdown()
        thread.join()


def test_mail_is_sent_again_where_the_server_refuses_for_now_and_answered_when_it_is_over(smtp):
    smtp.refuse.append("451 try later")
    watched(Email("warning"), SICK_THEN_WELL)
    first, reply = smtp.mails
    assert "Subject: rldk: " in first and "To: me@example.org, you@example.org" in first and "What to do:" in first
    name = next(line.partition(": ")[2] for line in first.splitlines() if line.startswith("Message-ID"))
    assert "Subject: Re: rldk" in reply and f"In-Reply-To: {name}" in reply


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


@pytest.mark.parametrize("refusals", [[503, 500, 502], [429, 429], [408]])
def test_a_message_is_delivered_once_when_the_service_is_back(server, monkeypatch, refusals):
    monkeypatch.setenv("RLDK_SLACK_URL", server.url)
    server.answers = list(refusals)
    monitor = watched(Slack("warning"), [2.0] * 4)
    assert len(server.got) == 1 and monitor.guard.broken == {}


def test_a_webhook_keeps_its_id_when_it_is_sent_again(server):
    server.answers = [500, 503]
    watched(Webhook(f"{server.url}/hook", "warning"), [2.0] * 4)
    names = [given["id"] for _, _, given, _ in server.got]
    assert len(names) == len(set(names)) == 1


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


def anomaly(number: int, severity: str = "warning", cleared: int | None = None, kind: str = "kl_explosion") -> Anomaly:
    said = ("KL is high.", 1.0, 0.5, "Lower it.")
    return Anomaly(kind, severity, "kl_schedule", number, number, *said, number, cleared_index=cleared)


def test_an_incident_is_followed_up_when_it_grows_and_not_otherwise():
    messages = IncidentMessages(("warning", "critical"))
    (first,) = messages.due("run", [anomaly(10)])
    assert (first.state, first.number, messages.due("run", [anomaly(10)])) == ("new", 1, [])
    (second,) = messages.due("run", [anomaly(10), anomaly(12, "critical")])
    assert (second.state, second.id, second.number, second.severity) == ("grown", first.id, 2, "critical")
    (third,) = messages.due("run", [anomaly(10, cleared=30), anomaly(12, "critical", cleared=31)])
    assert third.state == "over" and third.text == third.headline


def test_an_incident_that_is_not_severe_enough_or_already_over_is_not_told():
    messages = IncidentMessages(("critical",))
    assert messages.due("run", [anomaly(10)]) == []
    assert IncidentMessages(("warning",)).due("run", [anomaly(10, cleared=12)]) == []
