"""Follow a run that is being written: curves, scores, alerts as they come, and how long it will take. `q` quits.

RUN is a log, which need not exist yet, or a folder, of which the newest log is followed. Where the output is no terminal,
plain lines are printed: each alert at once, and where the run stands every few seconds.
Exit status: 0, or 1 if something is critical and --fail-on asked for it.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import Any

from rldk.cli.options import add_fail_on, add_reading, exit_status, parse_field_map, read_config
from rldk.cli.output import clean, while_read
from rldk.core.errors import ReadError, UsageError

_POLL = 0.25
_SEARCH = 0.5
_MANY = 200  # events of one look: more than a run writes in that time


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="RUN", help="a log, or a folder with logs")
    parser.add_argument("--plain", action="store_true", help="print lines, also in a terminal")
    parser.add_argument(
        "--every", type=float, default=10.0, metavar="SECONDS", help="plain: how often to say where the run stands"
    )
    parser.add_argument("--steps", type=int, metavar="N", help="how many steps the run will have, to tell how long it will take")
    parser.add_argument("--idle", type=float, metavar="SECONDS", help="end when nothing was written for so long")
    add_fail_on(parser, "never")
    add_reading(parser)


def run(args: argparse.Namespace) -> int:
    if not args.every > 0:
        raise UsageError(f"Expected --every to be a positive number of seconds, got {args.every:g}.")
    watch = Watch(args)
    with while_read():
        if args.plain or not sys.stdout.isatty():
            watch_lines(watch, args.every)
        else:
            watch_screen(watch)
    return exit_status((state.verdict[0] for state in watch.runs.values()), args.fail_on)


class Watch:
    """The log that is watched, and the runs in it; `look` takes what is new."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.path = Path(args.path)
        self.config = read_config(args)
        self.runs: dict[str, Any] = {}
        self.current: Any = None
        self.busy = False
        self.trouble = ""
        self._options = (args.adapter, parse_field_map(args.field_map))
        self._total, self._idle = args.steps, args.idle
        self._feed: Any = None
        self._last_news = self._last_search = math.inf  # until the first look: reading what is there takes its time
        self._not_before = 0.0

    def look(self) -> list[Any]:
        """Take what is new; the anomalies that it raised, with the run of each."""
        from rldk.cli.watch_state import RunState

        feed = self._follow()
        news = feed.read_new() if feed is not None else None
        if self._last_news == math.inf:
            self._last_news = self._last_search = time.monotonic()
        if news is None:
            return []
        if news.started_over:
            self.runs, self.current = {}, None
        self.busy = not news.caught_up and sum(map(len, news.events.values())) > _MANY
        raised = []
        for name, events in news.events.items():
            if name not in self.runs:
                self.runs[name] = RunState(name, self.config, self._total)
            self.current = self.runs[name]
            raised += [(self.current, anomaly) for anomaly in self.current.take(events)]
            self._last_news = time.monotonic()
        return raised

    def _follow(self) -> Any:
        """The log to follow; that of a folder is looked for again when it has been silent, since another run may have begun."""
        from rldk.cli.watch_feed import feed_of, newest

        now = time.monotonic()
        if self._feed is not None and self.path.is_dir() and now - max(self._last_news, self._last_search) > 2.0:
            self._last_search = now
            log = newest(self.path)
            if log is not None and log != self._feed.path:
                self._feed, self.runs, self.current = None, {}, None
        if self._feed is None and now >= self._not_before:
            self._not_before = now + _SEARCH
            try:
                self._feed, self.trouble = feed_of(self.path, *self._options), ""
            except ReadError as error:  # what is there cannot be read, yet: it may have only begun
                self.trouble = str(error)
        return self._feed

    @property
    def over(self) -> bool:
        """Whether nothing came for as long as was asked."""
        return self._idle is not None and not self.busy and time.monotonic() - self._last_news >= self._idle


def watch_lines(watch: Watch, every: float) -> None:
    """Plain lines: alerts as they come, where the run stands now and then, and how it ended."""
    from rldk.cli.watch_screen import alert_line, progress_line

    told_at, told = 0.0, ""
    if not watch.path.exists():
        _say(f"waiting for {clean(watch.path, 500)}")
    while not watch.over:
        for state, anomaly in watch.look():
            name = f"{clean(state.run_id, 60)}  " if len(watch.runs) > 1 else ""
            _say(name + alert_line(anomaly))
        if watch.current is not None and not watch.busy and time.monotonic() - told_at >= every:
            line = progress_line(watch.current)
            if line != told:
                _say(line)
            told_at, told = time.monotonic(), line
        if not watch.busy:
            time.sleep(_POLL)
    if not watch.runs:
        _say(f"nothing to watch in {clean(watch.path, 500)}" + (f": {clean(watch.trouble, 500)}" if watch.trouble else ""))
    for state in watch.runs.values():
        verdict, reason = state.verdict
        _say(f"{clean(state.run_id, 60)}: {verdict} after {state.events} events: {reason}")


def watch_screen(watch: Watch) -> None:
    """A screen of its own, drawn four times a second, until `q` or the end."""
    from rich.live import Live

    from rldk.cli.output import console
    from rldk.cli.watch_keys import listen
    from rldk.cli.watch_screen import screen

    out = console()
    out.soft_wrap = False
    with listen() as keys, Live(console=out, screen=True, auto_refresh=False, redirect_stdout=False) as live:
        while not watch.over:
            watch.look()
            live.update(
                screen(watch.current, str(watch.path), out.width, out.height, busy=watch.busy, trouble=watch.trouble),
                refresh=True,
            )
            if "q" in keys.wait(0.01 if watch.busy else _POLL).lower():
                break
    for state in watch.runs.values():
        verdict, reason = state.verdict
        out.print(f"{clean(state.run_id, 60)}: {verdict} after {state.events} events: {clean(reason)}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
