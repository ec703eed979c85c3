"""What `rldk watch` shows: a screen that is drawn again and again, or plain lines where there is no terminal."""

from __future__ import annotations

import time
from math import isfinite
from typing import TYPE_CHECKING

from rldk.cli.output import clean, short_number, sparkline, unicode_terminal
from rldk.cli.watch_state import CURVES, RunState
from rldk.core.anomaly import Anomaly
from rldk.judge.machine import is_machine
from rldk.judge.scores.alarms import tone_of

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

__all__ = ["alert_line", "duration", "progress_line", "screen"]

STYLES = {"critical": "bold red", "warning": "yellow", "healthy": "green", "no_data": "dim"}
_MAIN = (("overall_health", "health"), ("training_stability", "stability"), ("convergence_quality", "convergence"))
_TONES = {"critical": "red", "warning": "yellow", "healthy": "green"}
_OLD = 60.0


def duration(seconds: float) -> str:
    """A time in few characters; empty where it is not known."""
    if not isfinite(seconds):
        return ""
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} d"


def alert_line(anomaly: Anomaly) -> str:
    """An anomaly as one plain line."""
    return f"step {anomaly.step}  {anomaly.severity.upper()}  {anomaly.type}: {clean(anomaly.message, 300)}"


def progress_line(state: RunState) -> str:
    """Where a run stands, as one plain line."""
    verdict, _ = state.verdict
    parts = [f"step {state.last_step}", verdict]
    parts += [f"{name} {short_number(history.last)}" for name in CURVES[:8] if (history := state.curves.get(name))]
    parts += [f"{label} {state.scores[name]:.2f}" for name, label in _MAIN if name in state.scores]
    if left := duration(state.seconds_left):
        parts.append(f"{left} left")
    return "  ".join(parts)


def screen(
    state: RunState | None, path: str, width: int, height: int, *, busy: bool = False, trouble: str = ""
) -> RenderableType:
    """The whole screen, no higher and no wider than the terminal."""
    from rich.console import Group
    from rich.text import Text

    keys = Text("q quits", style="dim")
    if state is None:
        waiting = Text(f"waiting for {clean(path, max(20, width - 14))}", style="bold")
        why = clean(trouble or "Nothing is there yet that can be read.", 400)
        return Group(waiting, *_wrapped(why, width, 6), Text(), keys)
    head = _head(state, width, busy)
    incident = _incident(state, width)
    alerts = _alerts(state, width)
    room = height - len(head) - len(incident) - 3
    curves = _curves(state, width, max(1, room - min(len(alerts), max(2, room // 3))))
    alerts = alerts[-max(0, room - len(curves)) :] if room > len(curves) else []
    lines = [*head, Text(), *curves, Text(), *incident, *alerts]
    return Group(*lines[: height - 1], keys)


def _head(state: RunState, width: int, busy: bool) -> list[Text]:
    from rich.text import Text

    verdict, reason = state.verdict
    age = time.time() - state.last_event
    pace, left = duration(state.seconds_a_step), duration(state.seconds_left)
    facts = [f"step {state.last_step:,}", f"{state.events:,} events"]
    facts += [f"{pace} a step"] if pace else []
    facts += [f"{left} left"] if left else []
    facts.append(f"coverage {state.result.coverage.level}")
    facts.append("reading" if busy else f"last event {duration(max(0.0, age))} ago")
    title = Text.assemble(
        (f" {verdict.upper()} ", f"{STYLES[verdict]} reverse"), " ", (clean(state.run_id, 60), "bold"), f"  {clean(reason)}"
    )
    told = Text("  ".join(facts), style="yellow" if age > _OLD and not busy else "dim")
    scores = Text()
    for name, label in _MAIN:
        value = state.scores.get(name)
        scores.append(f"{label} ", style="dim")
        if value is None:
            scores.append("no evidence   ", style="dim")
        else:
            scores.append(f"{_bar(value)} {value:.2f}   ", style=_TONES[tone_of(value)])
    return [_one_line(line, width) for line in (title, told, scores)]


def _bar(value: float, cells: int = 10) -> str:
    full, empty = ("█", "░") if unicode_terminal() else ("#", ".")
    filled = round(value * cells)
    return full * filled + empty * (cells - filled)


def _curves(state: RunState, width: int, most: int) -> list[Text]:
    from rich.text import Text

    names = [name for name in CURVES if name in state.curves][:most]
    if not names:
        return [Text("no metric to show yet", style="dim")]
    label = max(map(len, names))
    wide = max(8, min(100, width - label - 30))
    lines = []
    for name in names:
        history = state.curves[name]
        now = (f"{short_number(history.last):>9}", "bold")
        drawn = f"{sparkline(history.values(), wide):{wide}}  "
        line = Text.assemble((f"{name:{label}}  ", "dim"), drawn, now, (f"  from {short_number(history.first)}", "dim"))
        lines.append(_one_line(line, width))
    return lines


def _incident(state: RunState, width: int) -> list[Text]:
    """The worst incident in a few lines: what, since when, what to do."""
    from rich.text import Text

    worst = state.result.worst
    if worst is None:
        return []
    good = "none in this log" if worst.last_good_step is None else str(worst.last_good_step)
    severity = (f"{worst.severity} ", STYLES[worst.severity])
    over = "" if worst.recovered_step is None else f", recovered at step {worst.recovered_step}"
    head = Text.assemble(severity, f"at step {worst.step}: ", (worst.title, "bold"), f"{over}; last good step: {good}")
    return [_one_line(head, width), *_wrapped(f"What to do: {worst.advice}", width, 3), Text()]


def _alerts(state: RunState, width: int) -> list[Text]:
    from rich.text import Text

    lines = []
    for anomaly in state.judge.engine.anomalies[-50:]:  # those of the machine too, marked as such
        gone = anomaly.cleared_index is not None
        style = "dim" if gone else STYLES[anomaly.severity]
        kind = f"machine: {anomaly.type}" if is_machine(anomaly) else anomaly.type
        line = Text.assemble((f"{anomaly.step:>7}  ", "dim"), (kind, style), f"  {clean(anomaly.message, 300)}")
        lines.append(_one_line(line.append("  (gone)", "dim") if gone else line, width))
    return lines


def _one_line(text: Text, width: int) -> Text:
    text.truncate(max(1, width), overflow="ellipsis")
    text.no_wrap = True
    return text


def _wrapped(words: str, width: int, most: int) -> list[Text]:
    import textwrap

    from rich.text import Text

    return [Text(line) for line in textwrap.wrap(clean(words, 600), max(20, width), max_lines=most, placeholder=" …")]
