"""Follow a run that is being written: curves, scores, alerts, and the time that is left. Press `q` to quit.

RUN is a log, which need not exist yet, or a folder, whose newest log is followed. If the output is not a terminal, plain
lines are printed: each alert at once, and the state of the run every few seconds.

    rldk watch logs/run.jsonl --notify https://hooks.example.org/x --stop-cmd 'scancel 4711' --on critical

--notify reports each incident, with a plot where the service takes one; --stop-cmd runs a command once, when a confirmed
anomaly stands.
Exit status: 0, or 1 if the verdict is one that --fail-on names.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rldk.cli.options import add_alarms, add_fail_on, add_reading, exit_status, field_map_of, read_config
from rldk.cli.output import while_read
from rldk.core.errors import UsageError
from rldk.core.text import clean

if TYPE_CHECKING:
    from rldk.cli.followed_runs import WatchedRun
    from rldk.core.anomaly import Anomaly
    from rldk.judge.follow import LogFollower

_POLL = 0.25
_SEARCH = 2.0  # a folder is searched for a newer log after so many seconds without a new event


EXAMPLES = """
rldk watch out/run.jsonl
rldk watch out/demo --idle 2
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="RUN", help="a log, or a folder with logs")
    parser.add_argument("--plain", action="store_true", help="print plain lines, also in a terminal")
    parser.add_argument(
        "--every", type=float, default=10.0, metavar="SECONDS", help="with plain lines: how often the state of the run is printed"
    )
    parser.add_argument("--steps", type=int, metavar="N", help="the number of steps of the run, to estimate the time left")
    parser.add_argument("--idle", type=float, metavar="SECONDS", help="exit after SECONDS without a new event")
    parser.add_argument(
        "--stop-cmd", metavar="COMMAND",
        help="run this command once, when such an anomaly stands and is confirmed; not run by a shell. It gets the anomalies as "
        "JSON on its standard input, and RLDK_RUN_ID and RLDK_STEP",
    )  # fmt: skip
    add_alarms(parser)
    add_fail_on(parser, "never")
    add_reading(parser)


def run(args: argparse.Namespace) -> int:
    if not args.every > 0:
        raise UsageError(f"Expected --every to be a positive number of seconds, got {args.every:g}.")
    watch = Watch(args)
    try:
        with while_read():
            if args.plain or not sys.stdout.isatty():
                watch_lines(watch, args.every)
            else:
                watch_screen(watch)
    finally:
        for line in watch.close():
            sys.stderr.write(f"rldk: {line}\n")
    return exit_status((one.result.verdict for one in watch.follower.runs.values()), args.fail_on)


class Watch:
    """The log that is watched: the one that was given, or the newest one of a folder."""

    def __init__(self, args: argparse.Namespace) -> None:
        from rldk.cli.followed_runs import RunStopper
        from rldk.monitor import Command
        from rldk.monitor.alarms import Alarms
        from rldk.storage.copies import local_copies

        self.path = local_copies(args.path)
        self._config = read_config(args)
        self._reading = (args.adapter, field_map_of(args))
        self._total_steps, self._idle = args.steps, args.idle
        self._last_event, self._last_search = math.inf, 0.0  # the clock starts with the first read
        self.said: list[str] = []
        self._alarms = Alarms(args.notify, args.on, self.said.append)
        self._stopper = RunStopper(args.on if args.stop_cmd else None, args.confirm)
        self._stop_command = Command(args.stop_cmd, args.on) if args.stop_cmd else None
        self.follower = self._follow(self._newest())

    def _newest(self) -> Path:
        """The log to follow."""
        from rldk.cli.followed_runs import newest_log

        return (newest_log(self.path) or self.path) if self.path.is_dir() else self.path

    def _follow(self, path: Path) -> LogFollower[WatchedRun]:
        from rldk.cli.followed_runs import WatchedRun
        from rldk.judge.follow import LogFollower

        def make_run(name: str, framework: str | None) -> WatchedRun:
            return WatchedRun(name, framework, self._config, self._total_steps)

        hint, field_map = self._reading
        return LogFollower(path, make_run, adapter_hint=hint, field_map=field_map)

    def read(self) -> list[tuple[WatchedRun, Anomaly]]:
        """Judge what is new; the anomalies that it raised, with the run of each."""
        before = self.follower.events
        raised = self.follower.read()
        if self.follower.events > before or self.follower.is_reading or self._last_event == math.inf:
            self._last_event = time.monotonic()
        self._act()
        self._search()
        return raised

    def _act(self) -> None:
        """Post what has not been posted, and run the command that stops the run if that is called for."""
        for one in self.follower.runs.values():
            self._alarms.fresh(one.run_id, one.judge.anomalies, one.recent.curves())
        decided = self._stopper.look(self.follower.runs.values())
        if decided is not None and self._stop_command is not None:
            run_id, stop = decided
            self.said.append(f"{clean(self._stop_command.key, 200)} is run at step {stop.step}: {clean(stop.message, 300)}")
            reasons = [one for one in self.follower.runs[run_id].judge.standing if one.type == stop.type]
            self._alarms.send(self._stop_command, run_id, reasons)

    def close(self) -> list[str]:
        """Wait for what is still to be sent; what there is to say about it."""
        self.follower.close()
        self._alarms.close(*([] if self._stop_command is None else [self._stop_command]))
        return self.said

    def _search(self) -> None:
        """Switch to a newer log of the folder if the one that is followed is silent: another run may have begun."""
        now = time.monotonic()
        if self.path.is_dir() and now - max(self._last_event, self._last_search) > _SEARCH:
            self._last_search = now
            newest = self._newest()
            if newest != self.follower.path:
                self.follower.close()
                self.follower = self._follow(newest)

    @property
    def age(self) -> float:
        """Seconds since the log was last written to."""
        from rldk.ingest.discovery import stamp_of

        stamp = stamp_of(self.follower.path)
        return 0.0 if stamp is None else max(0.0, time.time() - stamp[1] / 1e9)

    @property
    def is_over(self) -> bool:
        """Whether no event has come for as long as --idle says."""
        return self._idle is not None and not self.follower.busy and time.monotonic() - self._last_event >= self._idle

    def endings(self) -> list[str]:
        """One line per run about how it ended, with the cause of its worst incident and what to do."""
        from rldk.present.incidents import how_it_ended

        if not self.follower.runs:
            why = f": {clean(self.follower.problem, 500)}" if self.follower.problem else ""
            return [f"nothing to watch in {clean(self.path, 500)}{why}"]
        return [how_it_ended(one.run_id, one.events, one.result) for one in self.follower.runs.values()]


def watch_lines(watch: Watch, every: float) -> None:
    """Plain lines: each alert at once, the cause of what is critical, the state of the run now and then, and how it ended."""
    from rldk.cli.followed_runs import alert_line, progress_line
    from rldk.present.incidents import in_brief

    printed_at, printed = 0.0, ""
    if not watch.path.exists():
        _print(f"waiting for {clean(watch.path, 500)}")
    while not watch.is_over:
        raised = watch.read()
        for one, anomaly in raised:
            _print(_name(watch, one) + alert_line(anomaly))
        for one in {id(one): one for one, _ in raised}.values():
            for incident in one.new_incidents():
                _print(_name(watch, one) + in_brief(incident))
        while watch.said:
            _print(watch.said.pop(0))
        if watch.follower.latest is not None and not watch.follower.busy and time.monotonic() - printed_at >= every:
            line = progress_line(watch.follower.latest)
            if line != printed:
                _print(line)
            printed_at, printed = time.monotonic(), line
        if not watch.follower.busy:
            time.sleep(_POLL)
    for line in watch.endings():
        _print(line)


def _name(watch: Watch, run: WatchedRun) -> str:
    """The name of a run before a line about it, where the log holds several."""
    return f"{clean(run.run_id, 60)}  " if len(watch.follower.runs) > 1 else ""


def watch_screen(watch: Watch) -> None:
    """A full screen, redrawn four times per second, until `q` is pressed or the run is over."""
    from rich.live import Live

    from rldk.cli.output import console
    from rldk.cli.watch_screen import listen, screen

    out = console()
    out.soft_wrap = False
    with listen() as keys, Live(console=out, screen=True, auto_refresh=False, redirect_stdout=False) as live:
        while not watch.is_over:
            watch.read()
            log, size = watch.follower, (out.width, out.height)
            shown = screen(log.latest, str(watch.path), *size, age=watch.age, busy=log.busy, problem=log.problem)
            live.update(shown, refresh=True)
            if "q" in keys.wait(0.01 if log.busy else _POLL).lower():
                break
    for line in watch.endings():
        out.print(line)


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
