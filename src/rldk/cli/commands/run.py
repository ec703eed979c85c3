"""Run a command, pass its output through, and judge what it prints as it appears.

    rldk run --stop-on critical -- python train.py --lr 1e-5

The output is kept in a log, whose verdict is the one that `rldk scan` gives. Messages of rldk go to stderr. The command gets a
terminal if the output is one, otherwise separate pipes; signals are passed on to it. With --stop-on it is ended, with all
processes that it started, when a confirmed anomaly of that severity stands.
Exit status: that of the command (128 + N if signal N ended it; 127 and 126 if it cannot be run). 1 if it succeeded although
rldk ended it, or with a verdict that --fail-on names.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rldk.cli.options import add_alarms, add_fail_on, add_reading, exit_status, field_map_of, judge_given, read_config
from rldk.core.anomaly import SEVERITIES, Anomaly
from rldk.core.errors import RLDKError, UsageError
from rldk.core.files import write_json
from rldk.core.text import clean

if TYPE_CHECKING:
    from rldk.cli.child_command import Command
    from rldk.monitor.outputs.incident_plot import Curves

_POLL = 0.25
_LINGER_SAID = 5.0
_LONGEST_HELD = 1 << 20


EXAMPLES = """
rldk run -- python train.py --epochs 1
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "rldk run [options] -- COMMAND ..."
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND", help="the command with its arguments")
    parser.add_argument("--log", metavar="FILE", help="where the output is kept (default: rldk_logs/run_TIME.log)")
    parser.add_argument("--stop-on", choices=SEVERITIES, help="end the command when such an anomaly stands and is confirmed")
    parser.add_argument(
        "--grace", type=float, default=30.0, metavar="SECONDS", help="between SIGTERM and SIGKILL (default: 30)"
    )  # fmt: skip
    parser.add_argument(
        "--linger", type=float, metavar="SECONDS",
        help="after SECONDS, end processes that still hold the output of the finished command (default: read on)",
    )  # fmt: skip
    parser.add_argument("--result", metavar="FILE", help="write the judgement to this file, as `rldk scan --json` prints it")
    add_alarms(parser)
    add_fail_on(parser, "never")
    add_reading(parser)


def run(args: argparse.Namespace) -> int:
    from rldk.cli.child_command import Command, CommandNotStartedError

    words = args.words[1:] if args.words[:1] == ["--"] else args.words
    if not words:
        raise UsageError("Expected a command after `--`, such as `rldk run -- python train.py`.")
    for name in ("grace", "linger"):
        if (value := getattr(args, name)) is not None and not value >= 0:
            raise UsageError(f"Expected --{name} to be a number of seconds, got {value:g}.")
    watching = Watching(args)
    log = OutputLog(watching.path)
    sys.stdout.flush()
    watching.command = Command(words, log.add)
    try:
        with watching.command.running():
            watching.follow()
    except CommandNotStartedError as error:
        sys.stderr.write(f"rldk: error: {clean(error, 500)}\n")
        return error.status
    finally:
        log.close()
    return watching.conclude(log.problem)


class Watching:
    """The judgement of a command's output while it runs, and at its end."""

    def __init__(self, args: argparse.Namespace) -> None:
        from rldk.cli.followed_runs import RecordedRun, RunStopper
        from rldk.judge.follow import LogFollower
        from rldk.monitor.alarms import Alarms

        self.args = args
        self.path = Path(args.log) if args.log else Path("rldk_logs", time.strftime(f"run_%Y%m%d_%H%M%S_{os.getpid()}.log"))
        self.command: Command
        self._config = read_config(args)
        self._stopper = RunStopper(args.stop_on, args.confirm)
        self._alarms = Alarms(args.notify, args.on, self._say)
        self._follower = LogFollower(
            self.path, lambda name, framework: RecordedRun(name, framework, self._config),
            adapter_hint=args.adapter, field_map=field_map_of(args),
        )  # fmt: skip
        self._ended_at: float | None = None
        self._said_linger = False

    def follow(self) -> None:
        """Until the command and its output have ended: judge what is new, and end the command if that is called for."""
        while not self.command.wait(_POLL):
            self._follower.read()
            for one in list(self._follower.runs.values()):
                self._tell(one.run_id, one.judge.anomalies, one.recent.curves())
            decided = self._stopper.look(self._follower.runs.values())
            if decided is not None:
                self._say(f"ending the command at step {decided[1].step}: {clean(decided[1].message, 300)}")
                self._end()
            self._linger()
        self._follower.close()

    def _tell(self, run_id: str, anomalies: list[Anomaly], curves: Curves) -> None:
        from rldk.cli.followed_runs import alert_line

        for anomaly in self._alarms.fresh(run_id, anomalies, curves):
            self._say(alert_line(anomaly))

    def _end(self) -> None:
        if self.command.end(self.args.grace):
            self._say("SIGTERM was not enough: the command was ended with SIGKILL")

    def _linger(self) -> None:
        """What the command started may hold its output after its end: it is read on, for as long as --linger permits."""
        if not self.command.has_ended:
            return
        now = time.monotonic()
        self._ended_at = self._ended_at or now
        since = now - self._ended_at
        if self.args.linger is not None and since >= self.args.linger:
            self._say(f"ending what the command left behind (processes: {self.command.others()})")
            self._end()
        elif since >= _LINGER_SAID and not self._said_linger:
            self._said_linger = True
            status, left = self.command.status, self.command.others()
            self._say(f"the command has ended with status {status}; reading on, as its output is still open (processes: {left})")

    def conclude(self, problem: str) -> int:
        """Judge the whole log, say what was found, and give the exit status."""
        from rldk.present.incidents import how_it_ended
        from rldk.present.plots.source import RunSource

        status = self.command.status
        verdicts: list[str] = []
        if problem:
            self._say(problem)
        try:
            judged = judge_given(self.args, [str(self.path)])
            verdicts = judged.verdicts
            for result in judged.results:
                self._tell(result.run.run_id, result.anomalies, partial(RunSource, result.run))
                self._say(how_it_ended(result.run.run_id, len(result.run), result))
            if self.args.result:
                write_json(self.args.result, judged.to_dict())
            self._say(f"the output is in {clean(self.path, 300)} (`rldk report` and `rldk scan` read it)")
        except RLDKError as error:
            self._say(f"nothing to judge: {clean(error, 500)}")
        self._alarms.close()
        if self._stopper.decision is not None:
            return status or 1
        return status or exit_status(verdicts, self.args.fail_on)

    def _say(self, line: str) -> None:
        """A line on stderr; the cursor of a terminal in which keys are passed on has to be returned too."""
        terminal = getattr(self, "command", None) and self.command.terminal
        end = "\r\n" if terminal and terminal.is_raw else "\n"
        sys.stderr.write(f"rldk: {line}{end}")
        sys.stderr.flush()


class OutputLog:
    """Everything that a command prints, in the order in which it arrives.

    Standard output is written in whole lines, since a program cuts it anywhere when it empties its buffer; errors as they
    come, since a progress bar is a line without an end. A log that cannot be written (a full disk) ends the reading, never
    the command.

    Attributes:
        problem: why the log could not be written to its end; empty where it could.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem = ""
        self._held = b""
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("wb", buffering=0)
        except OSError as error:
            raise UsageError(f"The log {path} cannot be written ({error.strerror}). Choose another with --log.") from error

    def add(self, stream: str, data: bytes) -> None:
        """Take what came from `stdout`, `stderr` or a `terminal`."""
        with self._lock:
            if stream == "terminal":
                data = data.replace(b"\r\n", b"\n")
            elif stream == "stdout":
                data = self._whole_lines(data)
            self._write(data)

    def close(self) -> None:
        """Write the last half line, and close the file."""
        with self._lock:
            self._write(self._held)
            self._held = b""
            self._file.close()

    def _whole_lines(self, data: bytes) -> bytes:
        data = self._held + data
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if len(data) - end > _LONGEST_HELD:
            end = len(data)
        self._held = data[end:]
        return data[:end]

    def _write(self, data: bytes) -> None:
        if not data or self.problem or self._file.closed:
            return
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            self.problem = f"{self.path} can no longer be written: {error.strerror}"
