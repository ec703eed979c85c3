"""Where a monitor puts what it sees, and what it does about it."""

from __future__ import annotations

import csv
import http.server
import io
import json
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from rldk.core.errors import UsageError
from rldk.core.event import Event
from rldk.monitor import Command, Monitor, Webhook
from rldk.monitor.outputs import Analysis, MetricsCsv, Output, Terminal, tracker_outputs
from rldk.testing.streams import faulty


def observe_all(monitor: Monitor, limit: int = 3) -> None:
    for step in range(limit):
        monitor.observe(Event(step, {"reward_mean": 2.0, "kl_mean": 0.1}))


def test_a_table_takes_new_columns_without_losing_rows(tmp_path: Path) -> None:
    with Monitor(tmp_path, run_id="run", outputs=[MetricsCsv(tmp_path / "m.csv", ("reward_mean", "never"))]) as monitor:
        monitor.observe(Event(1, {"reward_mean": 0.5}))
        monitor.observe(Event(2, {"reward_mean": 0.6, "späte Größe": 3.0}))
        monitor.observe(Event(3, {"kl_mean": float("nan")}))
    with (tmp_path / "m.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["step", "wall_time", "reward_mean", "never", "späte Größe", "kl_mean"]
    assert [row["reward_mean"] for row in rows] == ["0.5", "0.6", ""] and rows[2]["kl_mean"] == "nan"
    assert rows[0]["späte Größe"] == "" and rows[1]["späte Größe"] == "3.0"


@pytest.mark.parametrize("word", ["llama", "", 'say "hi"', "a,b", "back\\slash", "line\nbreak", "née", "null"])
def test_a_table_holds_words_and_numbers_as_they_are(word: str, tmp_path: Path) -> None:
    numbers = {"reward_mean": 0.1 + 0.2, "lr": 1e-05, "kl_mean": -1e300, "loss": float("nan"), "entropy_mean": float("-inf")}
    with Monitor(tmp_path, run_id="run", outputs=[MetricsCsv(tmp_path / "m.csv", ("model_type", "never", *numbers))]) as monitor:
        for left_out in ((), ("loss", "entropy_mean")):
            metrics = {name: value for name, value in numbers.items() if name not in left_out}
            monitor.observe(Event(1 + len(left_out), metrics, 0.1, model_info={"model_type": word}))
    with (tmp_path / "m.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row, step in zip(rows, ("1", "3"), strict=True):
        assert (row["step"], row["wall_time"], row["model_type"], row["never"]) == (step, "0.1", word, "")
        assert [float(row[name]) for name in ("reward_mean", "lr", "kl_mean")] == [0.1 + 0.2, 1e-05, -1e300]
    assert (rows[0]["loss"], rows[0]["entropy_mean"], rows[1]["loss"]) == ("nan", "-inf", "")


def test_the_analysis_is_written_at_checkpoints_and_at_the_end(tmp_path: Path) -> None:
    with Monitor(tmp_path, run_id="run", outputs=[Analysis(tmp_path, keep=8)]) as monitor:
        for event in faulty("kl_explosion", steps=40, onset=20, seed=1):
            monitor.observe(event)
            if event.step == 10:
                monitor.saved(10)
    assert json.loads((tmp_path / "run_comprehensive_analysis_step_10.json").read_text())["total_steps"] == 10
    assert json.loads((tmp_path / "run_comprehensive_analysis.json").read_text())["total_steps"] == 40
    kept = json.loads((tmp_path / "run_comprehensive_metrics.json").read_text())
    assert len(kept) <= 8 and kept[0]["step"] == 1 and kept[-1]["step"] >= 30  # thinned out over the whole run
    assert json.loads((tmp_path / "run_health_summary.json").read_text())["status"] in (
        "healthy",
        "degraded",
        "warning",
        "critical",
    )


def shown(no_color: bool, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    limits = {"reward_mean": 1.0}
    with Monitor(outputs=[Terminal(stream=out, every=2)], limits=limits, stop_on="warning") as monitor:
        for step in range(8):
            monitor.observe(Event(step, {"reward_mean": 2.0 if step % 2 == 0 else 0.0, "kl_mean": 0.1}))
        monitor.alert(9, "nonfinite_gradient", "evil \x1b[31mred\x07 text", "critical", "Skip it.")
    return out.getvalue()


def test_the_terminal_shows_coverage_alerts_and_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(True, monkeypatch)
    assert "\x1b[31m" not in text and "\x07" not in text and "\x1b[1;31m" not in text
    assert text.count("rldk watches") == 1 and "checks can run" in text and "it is not logged" in text
    assert text.count("above your limit") == 3 + 1  # three of four crossings, and once for the stop
    assert "further user_limit_exceeded alerts are in the log only" in text
    assert "rldk stops the run at step 0" in text and "What to do: Skip it." in text
    *_, verdict, cause = text.rstrip().splitlines()
    assert verdict.count("rldk: critical, 1 critical anomaly") == 1
    assert cause.startswith("rldk: Since step 0: numerical failure; last good step: none in this log. What to do: ")
    assert "\x1b[" in shown(False, monkeypatch)


def test_a_command_gets_the_alert_and_no_shell(tmp_path: Path) -> None:
    target = tmp_path / "told.json"
    program = (
        "import os, sys; open(sys.argv[1], 'w').write(os.environ['RLDK_RUN_ID'] + os.environ['RLDK_STEP'] + sys.stdin.read())"
    )
    action = Command([sys.executable, "-c", program, str(target)], severity="warning")
    with Monitor(run_id="run", actions=[action], limits={"reward_mean": 1.0}) as monitor:
        observe_all(monitor)
    text = target.read_text()
    assert text.startswith("run0") and json.loads(text[4:])["anomalies"][0]["type"] == "user_limit_exceeded"


def test_a_critical_action_is_not_bothered_with_warnings(tmp_path: Path) -> None:
    action = Command([sys.executable, "-c", "raise SystemExit(3)"])
    with Monitor(actions=[action], limits={"reward_mean": 1.0}) as monitor:
        observe_all(monitor)
    assert monitor.guard.broken == {}


def test_a_failing_command_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    action = Command([sys.executable, "-c", "raise SystemExit(3)"], severity="warning")
    with caplog.at_level(logging.ERROR, "rldk"), Monitor(actions=[action], limits={"reward_mean": 1.0}) as monitor:
        observe_all(monitor)
    assert len(caplog.records) == 1 and "exit status 3" in caplog.text
    assert len(monitor.anomalies) == 1


def test_a_webhook_posts_json() -> None:
    got: list[Any] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            hook = Webhook(f"http://127.0.0.1:{server.server_port}/hook", severity="warning")
            with Monitor(run_id="run", actions=[hook], limits={"reward_mean": 1.0}) as monitor:
                observe_all(monitor)
        finally:
            server.shutdown()
            thread.join()
    assert monitor.guard.broken == {}
    assert got[0]["run_id"] == "run" and "above your limit" in got[0]["text"] and got[0]["anomalies"][0]["step"] == 0


@pytest.mark.parametrize(
    "make", [lambda: Webhook("file:///etc/passwd"), lambda: Command(""), lambda: Webhook("http://x", "fatal")]
)
def test_what_cannot_be_done_is_refused(make: Any) -> None:
    with pytest.raises(UsageError):
        make()


def test_a_tracker_that_is_not_known_is_refused() -> None:
    with pytest.raises(UsageError, match="papyrus"):
        tracker_outputs(["papyrus"])


MIRROR = """
import sys
from rldk.core.event import Event
from rldk.monitor import Monitor
from rldk.monitor.outputs import tracker_outputs
with Monitor(sys.argv[2], run_id="run", outputs=tracker_outputs(sys.argv[1]), limits={"reward_mean": 1.0}) as monitor:
    for step in range(6):
        monitor.observe(Event(step, {"reward_mean": 2.0}))
assert monitor.guard.broken == {}, monitor.guard.broken
"""


@pytest.mark.full
@pytest.mark.parametrize("name", ["tensorboard", "wandb", "mlflow", "trackio"])
def test_a_tracker_holds_metrics_and_alerts(name: str, tmp_path: Path) -> None:
    pytest.importorskip(name)
    own = {key: value for key, value in os.environ.items() if not key.startswith("WANDB_")}  # not the service of another test
    told = {
        **own, "WANDB_MODE": "offline", "WANDB_SILENT": "true", "MLFLOW_TRACKING_URI": f"sqlite:///{tmp_path}/mlflow.db",
        "TRACKIO_DIR": str(tmp_path / "trackio"), "HF_HUB_OFFLINE": "1", "HOME": str(tmp_path),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", MIRROR, name, str(tmp_path)], cwd=tmp_path, env=told, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    held = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert any(b"rldk/reward_mean" in content and b"rldk/alerts" in content for content in held.values()), sorted(held)


def test_a_new_metric_in_each_event_costs_the_table_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rewrites = []
    real = MetricsCsv._rewrite
    monkeypatch.setattr(MetricsCsv, "_rewrite", lambda table, rows: (rewrites.append(1), real(table, rows))[1])
    with Monitor(tmp_path, run_id="run", outputs=[MetricsCsv(tmp_path / "m.csv")]) as monitor:
        for step in range(1500):
            monitor.observe(Event(step, {"reward_mean": 1.0, f"new_{step}": float(step)}))
    with (tmp_path / "m.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rewrites) < 60 and len(rows) == 1500 and len(rows[0]) == 1000
    assert [rows[step][f"new_{step}"] for step in (0, 500, 990)] == ["0.0", "500.0", "990.0"] and rows[1]["new_0"] == ""


def test_a_cell_that_begins_a_formula_is_harmless(tmp_path: Path) -> None:
    names = {"=cmd|' /C calc'!A0": 1.0, "@sum": 2.0, "-x": 3.0, "plain": -4.0}
    with Monitor(tmp_path, run_id="run", outputs=[MetricsCsv(tmp_path / "m.csv", ["model_type"])]) as monitor:
        monitor.observe(Event(1, names, model_info={"model_type": "+1+1"}))
    with (tmp_path / "m.csv").open(newline="", encoding="utf-8") as file:
        header, row = csv.reader(file)
    assert header[2:] == ["model_type", "'=cmd|' /C calc'!A0", "'@sum", "'-x", "plain"]
    assert row[2:] == ["'+1+1", "1.0", "2.0", "3.0", "-4.0"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs process groups")
def test_a_command_ends_with_its_children_when_the_run_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rldk.monitor.outputs.notifications._CLOSE_SECONDS", 0.5)
    pids = tmp_path / "pids"
    program = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "open(sys.argv[1] + '.part', 'w').write(f'{os.getpid()} {child.pid}'); os.rename(sys.argv[1] + '.part', sys.argv[1])\n"
        "time.sleep(600 if sys.argv[2] == 'long' else 0)\n"
    )
    for kind in ("long", "short"):
        pids.unlink(missing_ok=True)
        action = Command([sys.executable, "-c", program, str(pids), kind], "warning")
        with Monitor(actions=[action], limits={"loss": 1.0}) as monitor:
            monitor.observe(Event(0, {"loss": 2.0}))
            while not pids.exists():
                threading.Event().wait(0.02)
        for pid in map(int, pids.read_text().split()):
            assert not _runs(pid), f"{kind}: {pid} is left behind"


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] != "Z"
    except OSError:
        return False


def test_every_output_knows_of_the_end_before_the_first_is_closed() -> None:
    """So that several notifications whose services hang wait at the same time, and not one after the other."""
    said: list[str] = []

    class Slow(Output):
        own_thread = False

        def __init__(self, name: str) -> None:
            self.label = name

        @property
        def key(self) -> str:
            return self.label

        def end_soon(self) -> None:
            said.append(f"{self.label} knows")
            raise OSError("and fails")

        def close(self) -> None:
            said.append(f"{self.label} closed")

    with Monitor(run_id="run", outputs=[Slow("a"), Slow("b")]) as monitor:
        monitor.observe(Event(1, {"reward_mean": 1.0}))
    assert said == ["a knows", "b knows", "a closed", "b closed"]
