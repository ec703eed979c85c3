"""The plot of an incident goes with its message where the service takes one, and never in the way of the message."""

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from servers import PNG

from rldk.core.event import Event
from rldk.monitor import Discord, Email, Monitor, Ntfy, Slack
from rldk.monitor.outputs import incident_plot
from rldk.testing.streams import faulty

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture(autouse=True)
def _painter() -> None:
    pytest.importorskip("resvg_py")  # of the extra `report`


def watched(output: Any, rewards: list[float]) -> Monitor:
    """A run with a limit of 1 on the reward, so that it is sick while the reward is above."""
    with Monitor(run_id="run", actions=[output], limits={"reward_mean": 1.0}) as monitor:
        for step, reward in enumerate(rewards):
            monitor.observe(Event(step, {"reward_mean": reward, "kl_mean": 0.1}))
        done = threading.Event()
        output._worker.submit(done.set)
        assert done.wait(20)
    return monitor


SICK = [0.5] * 4 + [2.0] * 4
SICK_THEN_WELL = [*SICK, *[0.5] * 12]


def test_discord_gets_the_plot_with_the_message(server, monkeypatch):
    monkeypatch.setenv("RLDK_DISCORD_URL", f"{server.url}/api/webhooks/1/secret")
    watched(Discord("warning"), SICK_THEN_WELL)
    new, over = server.got
    assert new.png.startswith(PNG) and new.body["attachments"] == [{"id": 0, "filename": "plot.png"}]
    assert "of run:" in new.body["content"] and over.png == b"" and "(over)" in over.body["content"]


@pytest.fixture
def bot(server: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("RLDK_SLACK_TOKEN", "xoxb-1")
    monkeypatch.setenv("RLDK_SLACK_CHANNEL", "#training")
    monkeypatch.setattr(Slack, "api", server.url)
    server.replies = {"getUploadURLExternal": {"upload_url": f"{server.url}/upload", "file_id": "F1"}}
    return server


def test_a_slack_bot_puts_the_plot_into_the_thread_of_the_message(bot):
    watched(Slack("warning"), SICK)
    paths = [request.path.partition("?")[0] for request in bot.got]
    assert paths == ["/chat.postMessage", "/files.getUploadURLExternal", "/upload", "/files.completeUploadExternal"]
    assert bot.got[2].png.startswith(PNG) and f"length={len(bot.got[2].png)}" in bot.got[1].path
    done = bot.got[3].body
    assert (done["files"][0]["id"], done["channel_id"], done["thread_ts"]) == ("F1", "C1", "7.1")
    assert "Authorization" not in bot.got[2].headers  # the place of the upload is another server


def test_a_slack_bot_that_may_not_upload_still_tells_and_says_so_once(bot, caplog):
    bot.replies = {"getUploadURLExternal": {"ok": False, "error": "missing_scope"}}
    with caplog.at_level(logging.WARNING, "rldk"):
        monitor = watched(Slack("warning"), [*SICK_THEN_WELL, *[2.0] * 4])
    told = [request for request in bot.got if "/chat." in request.path]
    assert len(told) == 3 and len(bot.got) == 4 and monitor.guard.broken == {}
    assert [record.message.count("missing_scope") for record in caplog.records] == [1]


def test_a_slack_webhook_gets_the_text_alone(server, monkeypatch):
    monkeypatch.setenv("RLDK_SLACK_URL", server.url)
    watched(Slack("warning"), SICK)
    assert len(server.got) == 1 and set(server.got[0].body) == {"text"}


def test_mail_shows_the_plot_in_its_text(smtp):
    watched(Email("warning"), SICK_THEN_WELL)
    first, reply = smtp.mails
    (image,) = [part for part in first.walk() if part.get_content_type() == "image/png"]
    assert image.get_payload(decode=True).startswith(PNG) and image["Content-ID"] == "<plot>"
    page = first.get_body(("html",)).get_content()
    assert 'src="cid:plot"' in page and "What to do:" in page
    assert "What to do:" in first.get_body(("plain",)).get_content() and reply.get_content_type() == "text/plain"


def test_ntfy_gets_the_plot_as_an_attachment(server, monkeypatch):
    monkeypatch.setenv("RLDK_NTFY_URL", f"{server.url}/my-topic")
    monkeypatch.setenv("RLDK_NTFY_TOKEN", "tk")
    watched(Ntfy("warning"), SICK_THEN_WELL)
    new, over = server.got
    assert (new.method, new.path) == ("PUT", "/my-topic") and new.png.startswith(PNG)
    assert "of run:" in new.headers["Title"] and "\\nWhat to do:" in new.headers["Message"]
    assert new.headers["Authorization"] == "Bearer tk" == over.headers["Authorization"]
    assert (over.path, over.body["topic"], over.body["priority"]) == ("/", "my-topic", 2) and "of run:" in over.body["title"]


def test_ntfy_without_attachments_gets_the_text(server, monkeypatch):
    monkeypatch.setenv("RLDK_NTFY_URL", f"{server.url}/my-topic")
    server.answers = [400]
    monitor = watched(Ntfy("warning"), [*SICK_THEN_WELL, *[2.0] * 4])
    assert [request.png for request in server.got] == [b""] * 3 and len(server.refused) == 1
    assert "What to do:" in server.got[0].body["message"] and monitor.guard.broken == {}


@pytest.mark.parametrize("fault", ["not installed", "cannot draw"])
def test_without_a_plot_the_text_goes_alone(server, monkeypatch, fault):
    monkeypatch.setenv("RLDK_DISCORD_URL", server.url)
    if fault == "not installed":
        monkeypatch.setitem(sys.modules, "resvg_py", None)
    else:
        monkeypatch.setattr(incident_plot, "_panel", lambda *_: 1 / 0)
    monitor = watched(Discord("warning"), SICK)
    assert [request.png for request in server.got] == [b""] and "of run:" in server.got[0].body["content"]
    assert monitor.guard.broken == {}


@pytest.mark.parametrize(("fault", "panel"), [("kl_explosion", "kl"), ("nonfinite_metric", "losses")])
def test_the_plot_is_the_one_that_shows_the_incident_and_holds_no_target(fault, panel, server, monkeypatch):
    drawn = []
    real = incident_plot._panel
    monkeypatch.setattr(incident_plot, "_panel", lambda *given: drawn.append(real(*given)) or drawn[-1])
    monkeypatch.setenv("RLDK_DISCORD_URL", server.url)
    output = Discord("critical")
    with Monitor(run_id="run", actions=[output]) as monitor:
        for event in faulty(fault, steps=300, onset=120, seed=1):
            monitor.observe(Event(event.step, {**event.metrics, "target_kl": 6.0}))
    assert drawn[0].key == panel and drawn[0].marks
    assert "target" not in drawn[0].alt and len(drawn[0].curves[0].x) > 100


def test_only_the_last_rows_are_kept():
    recent = incident_plot.RecentEvents()
    for step in range(3000):
        recent.add(Event(step, {"reward_mean": 1.0}, notes=["a prompt"]))
    source = recent.curves()()
    assert len(source) == 1000 and int(source.steps[0]) == 2000
