"""The screen of `rldk watch`, which is redrawn, and the single keys that control it."""

from __future__ import annotations

import os
import select
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rich.console import Group, RenderableType
from rich.text import Text

from rldk.cli.followed_runs import WatchedRun
from rldk.cli.output import sparkline, unicode_terminal
from rldk.core.text import ago, clean, duration, short_number
from rldk.detectors.table import is_machine
from rldk.judge.scores.alarms import tone_of
from rldk.present.incidents import last_good, recovered
from rldk.present.plots.standard import MAIN_METRICS
from rldk.present.verdicts import MAIN_SCORES, SHORT_SCORES, STYLES

__all__ = ["Keys", "listen", "screen"]

_OLD = 60.0


def screen(
    run: WatchedRun | None, path: str, width: int, height: int, *, age: float = 0.0, busy: bool = False, problem: str = ""
) -> RenderableType:
    """The whole screen, no larger than the terminal."""
    keys = Text("press q to quit", style="dim")
    if run is None:
        waiting = Text(f"waiting for {clean(path, max(20, width - 14))}", style="bold")
        why = clean(problem or "There is nothing to read yet.", 400)
        return Group(waiting, *_wrapped(why, width, 6), Text(), keys)
    head = _head(run, width, age, busy)
    incident = _incident(run, width)
    alerts = _alerts(run, width)
    room = height - len(head) - len(incident) - 3
    curves = _curves(run, width, max(1, room - min(len(alerts), max(2, room // 3))))
    alerts = alerts[-max(0, room - len(curves)) :] if room > len(curves) else []
    lines = [*head, Text(), *curves, Text(), *incident, *alerts]
    return Group(*lines[: height - 1], keys)


def _head(run: WatchedRun, width: int, age: float, busy: bool) -> list[Text]:
    result = run.result
    pace, left = duration(run.seconds_per_step), duration(run.seconds_left)
    facts = [f"step {run.last_step:,}", f"{run.events:,} events"]
    facts += [f"{pace} per step"] if pace else []
    facts += [f"{left} left"] if left else []
    facts.append(f"coverage {result.coverage.level}")
    facts.append("reading" if busy else f"last line {ago(age)}")
    title = Text.assemble(
        (f" {result.verdict.upper()} ", f"{STYLES[result.verdict]} reverse"), " ", (clean(run.run_id, 60), "bold"),
        f"  {clean(result.reason)}",
    )  # fmt: skip
    line = Text("  ".join(facts), style="yellow" if age > _OLD and not busy else "dim")
    scores = Text()
    for name in MAIN_SCORES:
        value = result.scores.get(name)
        scores.append(f"{SHORT_SCORES[name]} ", style="dim")
        if value is None:
            scores.append("not measured   ", style="dim")
        else:
            scores.append(f"{_bar(value)} {value:.2f}   ", style=STYLES[tone_of(value)])
    return [_one_line(text, width) for text in (title, line, scores)]


def _bar(value: float, cells: int = 10) -> str:
    full, empty = ("█", "░") if unicode_terminal() else ("#", ".")
    filled = round(value * cells)
    return full * filled + empty * (cells - filled)


def _curves(run: WatchedRun, width: int, max_lines: int) -> list[Text]:
    names = [name for name in MAIN_METRICS if name in run.curves][:max_lines]
    if not names:
        return [Text("no metric to show yet", style="dim")]
    label = max(map(len, names))
    wide = max(8, min(100, width - label - 30))
    lines = []
    for name in names:
        history = run.curves[name]
        now = (f"{short_number(history.last):>9}", "bold")
        drawn = f"{sparkline(history.values(), wide):{wide}}  "
        line = Text.assemble((f"{name:{label}}  ", "dim"), drawn, now, (f"  from {short_number(history.first)}", "dim"))
        lines.append(_one_line(line, width))
    return lines


def _incident(run: WatchedRun, width: int) -> list[Text]:
    """The worst incident in a few lines: what, since when, what to do."""
    worst = run.result.worst
    if worst is None:
        return []
    severity = (f"{worst.severity} ", STYLES[worst.severity])
    rest = f"{recovered(worst)}; last good step: {last_good(worst)}"
    head = Text.assemble(severity, f"at step {worst.step}: ", (worst.title, "bold"), rest)
    return [_one_line(head, width), *_wrapped(f"What to do: {worst.advice}", width, 3), Text()]


def _alerts(run: WatchedRun, width: int) -> list[Text]:
    lines = []
    for anomaly in run.judge.engine.anomalies[-50:]:  # with findings about the machine, marked as such
        cleared = anomaly.cleared_index is not None
        style = "dim" if cleared else STYLES[anomaly.severity]
        kind = f"machine: {anomaly.type}" if is_machine(anomaly) else anomaly.type
        line = Text.assemble((f"{anomaly.step:>7}  ", "dim"), (kind, style), f"  {clean(anomaly.message, 300)}")
        lines.append(_one_line(line.append("  (cleared)", "dim") if cleared else line, width))
    return lines


def _one_line(text: Text, width: int) -> Text:
    text.truncate(max(1, width), overflow="ellipsis")
    text.no_wrap = True
    return text


def _wrapped(words: str, width: int, max_lines: int) -> list[Text]:
    return [Text(line) for line in textwrap.wrap(clean(words, 600), max(20, width), max_lines=max_lines, placeholder=" …")]


class Keys:
    """Waits for a key; without a terminal it only waits."""

    def __init__(self, file: int | None) -> None:
        self._file = file

    def wait(self, seconds: float) -> str:
        """The key that was pressed within so many seconds; empty if none was."""
        if self._file is None:
            time.sleep(seconds)
            return ""
        ready, _, _ = select.select([self._file], [], [], seconds)
        if not ready:
            return ""
        given = os.read(self._file, 64)
        if not given:  # the terminal was closed
            self._file = None
            return "q"
        return given.decode(errors="replace")


@contextmanager
def listen() -> Iterator[Keys]:
    """Read single keys without echo, if there is a terminal to read from; its settings are restored afterwards."""
    try:
        import termios
        import tty

        file = sys.stdin.fileno()
        before = termios.tcgetattr(file)
    except (ImportError, OSError, ValueError, AttributeError, termios.error):
        yield Keys(None)
        return
    try:
        tty.setcbreak(file)
        yield Keys(file)
    finally:
        with suppress(termios.error):
            termios.tcsetattr(file, termios.TCSADRAIN, before)
