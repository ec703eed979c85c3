"""`rldk run`: passes a command's output and status through, judges what it prints, and ends it if asked."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from consoles import CONSOLES

from rldk.cli.main import main
from rldk.testing.streams import faulty, healthy

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals, sessions and terminals")

SICK = CONSOLES["verl"](faulty("entropy_explosion", "grpo", steps=250, onset=80, seed=1))
COPY = "import sys; sys.stdout.write(open(sys.argv[1], newline='').read())"


def rldk_run(folder: Path, words: Sequence[str], *options: str, **how: Any) -> subprocess.CompletedProcess[bytes]:
    call = [sys.executable, "-m", "rldk", "run", "--log", str(folder / "kept.log"), *options, "--", *words]
    return subprocess.run(call, capture_output=True, timeout=120, check=False, cwd=folder, **how)


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def without_place(run: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in run.items() if name not in ("path", "run_id")}


@pytest.mark.parametrize(
    ("framework", "verdict"), [*((name, "critical") for name in CONSOLES), ("trl", "healthy"), ("minimind", "healthy")]
)
def test_the_verdict_is_that_of_a_scan_of_the_file(
    framework: str, verdict: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    sick = faulty("entropy_explosion", "grpo", steps=250, onset=80, seed=1)
    events = sick if verdict == "critical" else healthy("grpo", 200, seed=0)
    console = tmp_path / "console.log"
    console.write_text(CONSOLES[framework](events), encoding="utf-8", newline="")
    main(["scan", str(console), "--json"])
    scanned = json.loads(capfdbinary.readouterr().out)["runs"]
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--log", "kept.log", "--result", "found.json", "--", "cat", str(console)]) == 0
    said = capfdbinary.readouterr()
    assert said.out == console.read_bytes() == (tmp_path / "kept.log").read_bytes()
    found = json.loads((tmp_path / "found.json").read_text())["runs"]
    assert [one["verdict"] for one in found] == [verdict]
    assert list(map(without_place, found)) == list(map(without_place, scanned))
    (ending,) = [line for line in said.err.decode().splitlines() if f"kept: {verdict} after {len(events)} events" in line]
    incidents = scanned[0]["incidents"]
    assert ("Since step " in ending) == bool(incidents)
    if incidents:
        assert f"; last good step: {incidents[0]['last_good_step']}. What to do: " in ending


def test_rows_on_stdout_keep_their_bars_on_stderr_and_the_streams_stay_apart(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "for n in range(1, 41):\n"
        "    print(f'\\r {n}/40 [00:10<00:30,  5.17s/it]', end='', file=sys.stderr, flush=True)\n"
        "    print({'loss': 1 / n, 'reward': n / 40, 'kl': 0.01, 'epoch': n / 40}, flush=True)\n"
    )
    done = rldk_run(tmp_path, python(code), "--result", "found.json")
    assert done.stdout.count(b"loss") == 40 and b"it]" not in done.stdout and b"40/40" in done.stderr
    assert json.loads((tmp_path / "found.json").read_text())["runs"][0]["events"] == 40


@pytest.mark.parametrize(("code", "status"), [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", 137)])
def test_the_status_of_a_command_that_dies_at_once_is_passed_on(code: str, status: int, tmp_path: Path) -> None:
    done = rldk_run(tmp_path, python(code))
    assert done.returncode == status and b"nothing to judge" in done.stderr


def test_a_command_that_cannot_be_run_has_the_status_that_shells_give(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program")
    for words, status in ((["no-such-program"], 127), ([str(tmp_path / "text")], 126)):
        done = rldk_run(tmp_path, words)
        assert done.returncode == status and b"cannot be run" in done.stderr


def test_no_command_and_a_wrong_option_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["run"], ["run", "--"], ["run", "--grace", "-1", "--", "true"], ["run", "--confirm", "-1", "--", "true"]):
        assert main(words) == 2 and "rldk: error:" in capsys.readouterr().err


TRAINING = """
import os, signal, subprocess, sys, time
if "ignore" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "300"])
away = subprocess.Popen(["setsid", "sleep", "300"])
open("pids", "w").write(f"{os.getpid()} {child.pid} {away.pid}")
for line in open(sys.argv[1]):
    print(line, end="", flush=True)
while True:
    time.sleep(0.1)
"""


def all_gone(pids: list[int]) -> bool:
    def runs(pid: int) -> bool:
        try:
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    end = time.monotonic() + 20
    while any(map(runs, pids)) and time.monotonic() < end:
        time.sleep(0.1)
    return not any(map(runs, pids))


@pytest.mark.parametrize(("stubborn", "status"), [((), 143), (("ignore",), 137)])
def test_a_confirmed_critical_ends_the_command_with_all_that_it_started(
    stubborn: tuple[str, ...], status: int, tmp_path: Path
) -> None:
    (tmp_path / "console.log").write_text(SICK)
    done = rldk_run(tmp_path, python(TRAINING, "console.log", *stubborn), "--stop-on", "critical", "--grace", "1")
    assert done.returncode == status
    said = done.stderr.decode()
    assert "ending the command at step" in said and ("SIGKILL" in said) == bool(stubborn)
    assert all_gone([int(pid) for pid in (tmp_path / "pids").read_text().split()])


def test_a_command_that_ends_well_although_it_was_stopped_is_no_success(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text(SICK)
    code = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n" + TRAINING.replace("300", "1")
    assert rldk_run(tmp_path, python(code, "console.log"), "--stop-on", "critical").returncode == 1


def test_without_being_asked_nothing_is_ended_and_the_verdict_may_fail_it(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text(SICK)
    assert rldk_run(tmp_path, python(COPY, "console.log")).returncode == 0
    assert rldk_run(tmp_path, python(COPY, "console.log"), "--fail-on", "critical").returncode == 1


def test_a_hundred_megabytes_pass_in_bounded_memory(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text(SICK)
    code = COPY + "\nfor n in range(1600): sys.stdout.write('x' * 65535 + '\\n')\n" + COPY
    measure = (
        "import re, sys; from rldk.cli.main import main; status = main(sys.argv[1:]);"  # ru_maxrss would have the parent's too
        "print(re.search('VmHWM:[^0-9]*([0-9]+)', open('/proc/self/status').read())[1], file=sys.stderr); sys.exit(status)"
    )
    words = ["run", "--log", "kept.log", "--result", "found.json", "--", *python(code, "console.log")]
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-c", measure, *words], stdout=out, stderr=subprocess.PIPE, cwd=tmp_path, timeout=300, check=False
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "out").stat().st_size == (tmp_path / "kept.log").stat().st_size > 100 << 20
    assert int(done.stderr.split()[-1]) < 400 << 10  # KiB
    assert json.loads((tmp_path / "found.json").read_text())["runs"][0]["verdict"] == "critical"


def test_a_command_that_closes_its_output_is_waited_for(tmp_path: Path) -> None:
    code = "import os, time; print('one', flush=True); os.close(1); os.close(2); time.sleep(1); open('done', 'w'); os._exit(5)"
    done = rldk_run(tmp_path, python(code))
    assert done.returncode == 5 and done.stdout == b"one\n" and (tmp_path / "done").exists()


FORK = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for line in open("console.log"):
            sys.stdout.write(line)
        sys.stdout.flush()
        time.sleep(float(sys.argv[1]))
    os._exit(0)
os._exit(4)
"""


def test_what_a_forked_process_prints_is_read_after_the_command_has_ended(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text(SICK)
    done = rldk_run(tmp_path, python(FORK, "0.5"), "--result", "found.json")
    assert done.returncode == 4 and done.stdout.decode() == SICK
    assert json.loads((tmp_path / "found.json").read_text())["runs"][0]["verdict"] == "critical"


def test_a_process_that_is_left_behind_is_ended_where_that_was_asked(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text(SICK)
    done = rldk_run(tmp_path, python(FORK, "300"), "--linger", "0.5", "--grace", "2")
    assert done.returncode == 4 and b"left behind (processes: 1)" in done.stderr


def test_a_reader_that_goes_away_ends_the_command_as_without_us(tmp_path: Path) -> None:
    call = [sys.executable, "-m", "rldk", "run", "--log", "kept.log", "--", "yes"]
    process = subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path)
    assert process.stdout is not None and process.stdout.readline() == b"y\n"
    process.stdout.close()
    assert process.wait(60) == 128 + signal.SIGPIPE
    process.communicate()


def test_a_full_disk_ends_the_reading_and_not_the_command(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    call = [sys.executable, "-m", "rldk", "run", "--log", "/dev/full", "--", "echo", "hello"]
    done = subprocess.run(call, capture_output=True, cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 0 and done.stdout == b"hello\n" and b"No space left" in done.stderr


def test_signals_are_passed_on_and_a_pipe_to_the_command_stays_open(tmp_path: Path) -> None:
    code = (
        "import signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
        "print(sys.stdin.readline().strip(), flush=True)\n"
        "while True: signal.pause()\n"
    )
    call = [sys.executable, "-m", "rldk", "run", "--log", "kept.log", "--", *python(code)]
    process = subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"typed\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"typed\n"
    process.terminate()
    assert process.wait(60) == 9
    process.communicate()


@pytest.mark.parametrize("keys", [b"typed\n", b"\x03"])
def test_in_a_terminal_the_command_has_one_and_ours_is_restored(keys: bytes, tmp_path: Path) -> None:
    import pty
    import select
    import termios

    code = (
        "import os, sys\n"
        "size = os.get_terminal_size()\n"
        "print('terminal', [os.isatty(n) for n in range(3)], size.columns, 'ready', flush=True)\n"
        "print('got', input(), flush=True)"
    )
    own, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (30, 91)) if sys.version_info >= (3, 11) else None
    before = termios.tcgetattr(theirs)
    start = (  # as a shell does it: a terminal of its own, and Ctrl-C not ignored, whatever the tests were started by
        "import os, sys, fcntl, signal, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
        "signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    )
    call = [sys.executable, "-c", start, sys.executable, "-m", "rldk", "run", "--log", "kept.log", "--", *python(code)]
    process = subprocess.Popen(call, stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path, start_new_session=True)
    shown, sent = b"", False
    end = time.monotonic() + 60
    while time.monotonic() < end and (process.poll() is None or select.select([own], [], [], 0.2)[0]):
        if select.select([own], [], [], 0.2)[0]:
            shown += os.read(own, 65536)
        if b"ready" in shown and not sent:
            sent = True
            time.sleep(0.3)  # `input()` may miss a signal that comes just before it reads
            os.write(own, keys)
    assert b"terminal [True, True, True]" in shown
    if sys.version_info >= (3, 11):
        assert b"[True, True, True] 91" in shown
    if keys == b"\x03":
        assert process.returncode == 130 and b"KeyboardInterrupt" in shown
    else:
        assert process.returncode == 0 and b"got typed" in shown
        assert b"\r" not in (tmp_path / "kept.log").read_bytes()
    assert termios.tcgetattr(theirs) == before
    os.close(own)
    os.close(theirs)


class Hook(BaseHTTPRequestHandler):
    """Keeps what is posted to it."""

    got: list[dict[str, Any]]

    def do_POST(self) -> None:
        type(self).got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def hook() -> Any:
    Hook.got = []
    server = HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()
    server.server_close()


def test_watch_posts_each_incident_and_runs_the_stop_command_once(
    hook: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "console.log"
    log.write_text(SICK)
    code = f"import os, sys; open('{tmp_path}/stopped', 'a').write(os.environ['RLDK_STEP'] + ' ' + sys.stdin.read() + chr(10))"
    stop = shlex.join([sys.executable, "-c", code])
    assert main(["watch", str(log), "--idle", "1", "--notify", hook, "--stop-cmd", stop, "--on", "critical"]) == 0
    lines = (tmp_path / "stopped").read_text().splitlines()
    assert len(lines) == 1
    step, _, message = lines[0].partition(" ")
    assert {one["severity"] for one in json.loads(message)["anomalies"]} == {"critical"} and int(step) > 80
    assert Hook.got and {message["severity"] for message in Hook.got} == {"critical"}
    told = [(message["incident"], message["state"], message["title"]) for message in Hook.got]
    assert len(set(told)) == len(told) == len({message["id"] for message in Hook.got})
    assert "is run at step" in capsys.readouterr().out


def test_watch_of_a_healthy_run_stops_nothing_and_a_dead_address_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "console.log"
    log.write_text(CONSOLES["verl"](healthy("grpo", 200, seed=0)))
    stop = f"touch {tmp_path}/stopped"
    assert main(["watch", str(log), "--idle", "0.5", "--stop-cmd", stop]) == 0
    assert not (tmp_path / "stopped").exists()
    log.write_text(SICK)
    capsys.readouterr()
    main(["watch", str(log), "--idle", "0.5", "--notify", "http://127.0.0.1:9/x"])
    captured = capsys.readouterr()
    assert re.search(r"webhook at 127\.0\.0\.1 .*failed", captured.out + captured.err)


def test_run_posts_what_it_found(hook: str, tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text(SICK)
    assert rldk_run(tmp_path, python(COPY, "console.log"), "--notify", hook).returncode == 0
    assert any("critical" in message["text"] for message in Hook.got)
