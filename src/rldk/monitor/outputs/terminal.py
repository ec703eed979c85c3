"""What a person at the terminal sees: the coverage once, and each alert as it is raised."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, ClassVar, TextIO

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.core.text import clean, short_number
from rldk.monitor.outputs.base import Output
from rldk.present.verdicts import STYLES

if TYPE_CHECKING:
    from rich.console import Console

    from rldk.monitor.monitor import Monitor

__all__ = ["Terminal"]

_SHOWN = 3


class Terminal(Output):
    """Prints the notes of the first event, alerts as they are raised, with advice, and at the end the verdict with the cause and
    the advice of the worst incident; in colour where the terminal supports it and `NO_COLOR` is not set.

    Args:
        coverage_after: after how many events to print which checks can run.
        every: print the main metrics of every n-th event; 0 never.
        stream: where to print; by default stderr, apart from what the training prints.
    """

    name: ClassVar[str] = "terminal"
    own_thread: ClassVar[bool] = False

    def __init__(self, coverage_after: int = 3, every: int = 0, stream: TextIO | None = None) -> None:
        self.coverage_after, self.every = coverage_after, every
        self._stream = stream
        self._count = 0
        self._times: dict[str, int] = {}

    def start(self, monitor: Monitor) -> None:
        self._monitor = monitor
        if monitor.resume_step is not None:
            self._console().print(f"rldk: run {clean(monitor.run_id)} resumes after step {monitor.resume_step}", style="dim")

    def _console(self) -> Console:
        from rich.console import Console

        stream = self._stream or sys.stderr
        return Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def take(self, event: Event, raised: list[Anomaly]) -> None:
        self._count += 1
        said = [anomaly.message for anomaly in raised]
        for note in [note for note in event.notes if note not in said] if self._count == 1 else ():
            self._console().print(f"rldk: {clean(note, 300)}", style="dim")
        if self._count == self.coverage_after:
            self._console().print(clean(self._monitor.coverage_line(), 1000), style="dim")
        if self.every and self._count % self.every == 0:
            self._console().print(_line(event))
        for anomaly in raised:
            self._say(anomaly)
        if raised and (decision := self._monitor.would_stop) is not None and decision.index == raised[0].index:
            word = "would stop" if decision.dry_run else "stops"
            self._console().print(f"rldk {word} the run at step {decision.step}: {clean(decision.message)}", style="bold")

    def alert(self, anomaly: Anomaly) -> None:
        self._say(anomaly)

    def _say(self, anomaly: Anomaly) -> None:
        """One alert; a limit that is crossed again and again is reported three times, then no more."""
        from rich.text import Text

        times = self._times[anomaly.type] = self._times.get(anomaly.type, 0) + 1
        if times > _SHOWN:
            return
        head = (f"rldk {anomaly.severity}", STYLES[anomaly.severity])
        said = f" at step {anomaly.step}: {clean(anomaly.message, 300)} "
        more = f" (further {anomaly.type} alerts are in the log only)" if times == _SHOWN else ""
        self._console().print(Text.assemble(head, said, (f"What to do: {anomaly.advice}{more}", "dim")))

    def close(self) -> None:
        if not self._count:
            return
        from rldk.present.incidents import in_brief

        summary, worst = self._monitor.summary(), self._monitor.result().worst
        line = f"rldk: {summary['verdict']}, {summary['reason']}, after {summary['events']} events"
        if summary["status"] == "degraded":
            line += f"; health {summary['scores']['overall_health']:.2f}, which the health summary calls degraded"
        self._console().print(clean(line), style=STYLES[summary["verdict"]])
        if worst is not None:
            self._console().print(f"rldk: {in_brief(worst)}")


def _line(event: Event) -> str:
    names = ("reward_mean", "kl_mean", "entropy_mean", "loss", "policy_loss", "value_loss", "grad_norm", "policy_grad_norm")
    shown = " ".join(f"{name}:{short_number(event.metrics[name])}" for name in names if name in event.metrics)
    return f"step {event.step} {shown}"
