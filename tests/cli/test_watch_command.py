"""`rldk watch`: follows a log as it grows, tells each alert once, and leaves the terminal as it was."""

from __future__ import annotations

import codecs
import json
import os
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rldk.cli.followed_runs import History
from rldk.cli.main import main
from rldk.core.event import Event
from rldk.log import EventWriter
from rldk.testing.streams import faulty


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_alerts_are_those_of_a_scan_each_told_once(make_log: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    log = make_log("critical")
    main(["scan", log, "--json"])
    scanned = json.loads(capsys.readouterr().out)["runs"][0]["anomalies"]
    assert main(["watch", log, "--idle", "0.3"]) == 0
    told = [line for line in lines_of(capsys) if re.match(r"step \d+  (WARNING|CRITICAL)", line)]
    assert told == [f"step {one['step']}  {one['severity'].upper()}  {one['type']}: {one['message']}" for one in scanned]
    assert len(told) >= 3


def test_the_cause_and_the_advice_come_when_it_is_critical_and_at_the_end(
    make_log: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    log = make_log("critical")
    main(["scan", log, "--json"])
    (incident,) = json.loads(capsys.readouterr().out)["runs"][0]["incidents"]
    main(["watch", log, "--idle", "0.3"])
    *told, last = lines_of(capsys)
    (cause,) = [line for line in told if line.startswith("Since step ")]
    assert cause.startswith(f"Since step {incident['step']}: {incident['title']}")
    assert f"last good step: {incident['last_good_step']}. What to do: {incident['advice'][:20]}" in cause
    assert "CRITICAL" in "".join(told[: told.index(cause)]) and last.endswith(f" {cause}")


def test_a_warning_has_its_cause_at_the_end_alone(make_log: Callable[..., str], capsys: pytest.CaptureFixture[str]) -> None:
    main(["watch", make_log("warning"), "--idle", "0.3"])
    *told, last = lines_of(capsys)
    assert not any("What to do" in line for line in told) and "1 warning anomaly. Since step 270: " in last


@pytest.mark.parametrize(
    ("kind", "fail_on", "status"), [("critical", "critical", 1), ("warning", "critical", 0), ("warning", "warning", 1)]
)
def test_the_status_fails_only_where_it_was_asked_to(make_log: Callable[..., str], kind: str, fail_on: str, status: int) -> None:
    assert main(["watch", make_log(kind), "--idle", "0.3", "--fail-on", fail_on]) == status


def test_a_log_that_comes_later_and_grows_is_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "live_events.jsonl"
    events = faulty("entropy_explosion", "ppo", steps=250, onset=80, seed=1)

    def write() -> None:
        time.sleep(0.3)
        with EventWriter(log) as writer:
            for event in events:
                event.model_info["run_id"] = "live"
                writer.write(event)
                time.sleep(0.002)

    thread = threading.Thread(target=write)
    thread.start()
    main(["watch", str(log), "--idle", "1", "--every", "0.3"])
    thread.join()
    told = lines_of(capsys)
    assert told[0] == f"waiting for {log}" and told[-1].startswith("live: critical after 250 events")
    steps = [int(match[1]) for line in told if (match := re.match(r"step (\d+)  (healthy|no_data|warning|critical)  ", line))]
    assert len(steps) >= 2 and steps == sorted(steps) and steps[-1] == 250
    assert any("CRITICAL" in line for line in told)


def test_a_log_that_is_started_over_is_judged_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "r_events.jsonl"
    with EventWriter(log) as writer:
        for n in range(40):
            writer.write(Event(n, {"reward_mean": 0.1 * n, "kl_mean": 0.1}))

    def replace() -> None:
        time.sleep(0.4)
        fresh = tmp_path / "fresh"
        rows = [Event(n, {"reward_mean": 0.1 + 0.01 * (n % 3), "kl_mean": 0.1}) for n in range(12)]
        fresh.write_bytes(b"".join(row.to_json() + b"\n" for row in rows))
        fresh.replace(log)

    thread = threading.Thread(target=replace)
    thread.start()
    main(["watch", str(log), "--idle", "1"])
    thread.join()
    assert lines_of(capsys)[-1].startswith("r: healthy after 12 events")


def test_a_log_of_another_framework_is_read_again_when_it_has_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "trainer_state.json"

    def state(rows: int) -> str:
        history = [
            {"step": n, "epoch": 0.1, "reward": 0.1 * n, "kl": 0.01, "completion_length": 100.0, "loss": 0.1}
            for n in range(1, rows)
        ]
        return json.dumps({"log_history": history, "global_step": rows})

    log.write_text(state(20))

    def grow() -> None:
        time.sleep(0.4)
        log.write_text(state(31))

    thread = threading.Thread(target=grow)
    thread.start()
    main(["watch", str(log), "--idle", "1"])
    thread.join()
    assert "after 30 events" in lines_of(capsys)[-1]


def test_of_a_folder_the_newest_log_is_followed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, name in enumerate(("old", "new")):
        path = tmp_path / f"{name}_events.jsonl"
        with EventWriter(path) as writer:
            for n in range(12):
                writer.write(Event(n, {"reward_mean": 0.1 + 0.01 * (n % 3)}, model_info={"run_id": name}))
        os.utime(path, (1e9 + number, 1e9 + number))
    main(["watch", str(tmp_path), "--idle", "0.3"])
    assert lines_of(capsys)[-1].startswith("new: healthy after 12 events")


@pytest.mark.parametrize("content", ["", "just words\n"])
def test_what_cannot_be_read_is_waited_for_and_named(tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log.jsonl").write_text(content)
    assert main(["watch", str(tmp_path / "log.jsonl"), "--idle", "0.3"]) == 0
    assert lines_of(capsys)[-1].startswith(f"nothing to watch in {tmp_path}")


def test_hostile_text_gives_the_terminal_no_orders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "r_events.jsonl"
    with EventWriter(log) as writer:
        for n in range(9):
            writer.write(Event(n, {"reward_mean": 0.1}, model_info={"run_id": "\x1b]0;owned\x07\x1b[2J" + "x" * 100_000}))
    main(["watch", str(log), "--idle", "0.3"])
    said = capsys.readouterr().out
    assert "\x1b" not in said and "\x07" not in said and len(said) < 1000


def test_a_history_is_bounded_and_keeps_the_spike() -> None:
    history = History()
    for n in range(100_000):
        history.add(50.0 if n == 61_803 else 1.0)
    assert len(history.values()) <= 513 and max(history.values()) == 50.0
    assert (history.first, history.last, history.count) == (1.0, 1.0, 100_000)
    history.add(float("nan"))
    assert any(value != value for value in history.values())


def test_a_pace_of_nothing_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "x", "--every", "0"]) == 2
    assert "--every" in capsys.readouterr().err


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, *arguments: str, rows: int = 30, columns: int = 110) -> None:
        import fcntl
        import pty
        import struct
        import termios

        self.own, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(theirs)
        environment = {**os.environ, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
        for name in ("NO_COLOR", "LINES", "COLUMNS"):  # the size is the terminal's own
            environment.pop(name, None)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rldk", *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
        )  # fmt: skip
        self.theirs = theirs
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.shown = ""

    def until(self, wanted: str, seconds: float = 20.0) -> bool:
        """Read until the text has been shown."""
        end = time.monotonic() + seconds
        while wanted not in self.plain() and time.monotonic() < end:
            ready, _, _ = select.select([self.own], [], [], 0.2)
            if ready:
                self.shown += self.decoder.decode(os.read(self.own, 65_536))  # a letter may come in two parts
        return wanted in self.plain()

    def plain(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.shown)

    def press(self, keys: str) -> None:
        os.write(self.own, keys.encode())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.own)
        os.close(self.theirs)


@pytest.mark.skipif(sys.platform == "win32", reason="no terminals of its own")
def test_in_a_terminal_it_draws_follows_and_q_leaves_all_as_it_was(tmp_path: Path) -> None:
    import termios

    log = tmp_path / "live_events.jsonl"
    terminal = Terminal("watch", str(log), "--steps", "500")
    try:
        assert terminal.until("waiting for")
        events = faulty("entropy_explosion", "ppo", steps=250, onset=80, seed=1)
        with EventWriter(log) as writer:
            for event in events[:60]:
                event.model_info["run_id"] = "live"
                writer.write(event)
            assert terminal.until("step 60") and terminal.until("reward_mean") and terminal.until("HEALTHY")
            assert "s left" in terminal.plain() or "min left" in terminal.plain() or "h left" in terminal.plain()
            for event in events[60:]:
                event.model_info["run_id"] = "live"
                writer.write(event)
        assert terminal.until("CRITICAL") and terminal.until("What to do:") and terminal.until("step 250")
        assert "▁" in terminal.shown and "█" in terminal.shown
        terminal.press("q")
        assert terminal.until("live: critical after 250 events", 10)
        assert terminal.process.wait(10) == 0
        assert "\x1b[?1049h" in terminal.shown and "\x1b[?1049l" in terminal.shown and "\x1b[?25h" in terminal.shown
        assert termios.tcgetattr(terminal.theirs) == terminal.before
    finally:
        terminal.close()


@pytest.mark.skipif(sys.platform == "win32", reason="no terminals of its own")
@pytest.mark.parametrize(("rows", "columns"), [(8, 40), (60, 220)])
def test_a_small_or_large_terminal_is_not_overrun(make_log: Callable[..., str], rows: int, columns: int) -> None:
    terminal = Terminal("watch", make_log("critical"), rows=rows, columns=columns)
    try:
        assert terminal.until("press q to quit")
        terminal.until("nothing such", 1.0)
        drawn = terminal.shown.split("\x1b[H")[-1].replace("\r", "").split("\n")
        assert len(drawn) <= rows
        controls = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]?)?")  # the last may have come in part so far
        assert max(len(controls.sub("", line)) for line in drawn) <= columns
        os.kill(terminal.process.pid, 2)
        end = time.monotonic() + 10.0
        while terminal.process.poll() is None and time.monotonic() < end:
            terminal.until("nothing such", 0.2)  # a screen of this size fills the terminal: unread, it holds the process up
        assert terminal.process.wait(10) == 130
    finally:
        terminal.close()
