"""The plot that goes with the message about an incident: the curve that shows it best, over the last rows of the run."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rldk.core.anomaly import Anomaly
from rldk.core.event import Event
from rldk.judge.incidents.incident import Incident

if TYPE_CHECKING:
    from rldk.present.plots.panel import Panel
    from rldk.present.plots.source import Source

__all__ = ["Curves", "RecentEvents", "incident_png"]

Curves = Callable[[], "Source"]
"""Makes the curves of a run; called on the notification's thread."""

_ROWS = 1000
_FALLBACK = ("reward", "kl", "losses", "gradients")
_log = logging.getLogger("rldk")


class RecentEvents:
    """The last 1000 events of a run: their numbers, and nothing else of them."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=_ROWS)

    def add(self, event: Event) -> None:
        """Take the next event."""
        self._events.append(Event(event.step, dict(event.metrics)))  # the trainer may still add metrics to its own

    def curves(self) -> Curves:
        """The curves as they are now, made when they are called for."""
        return partial(_curves, tuple(self._events))


def _curves(events: Sequence[Event]) -> Source:
    from rldk.present.plots.growing import GrowingRun

    made = GrowingRun()
    made.take(events)
    return made


def incident_png(curves: Curves, incident: Incident, members: Sequence[Anomaly]) -> bytes | None:
    """The plot as PNG; `None` where it cannot be painted (`rldk[report]` is not installed) or there is nothing to draw."""
    try:
        from rldk.present.plots.svg import png

        panel = _panel(curves(), incident, members)
        return None if panel is None else png(panel, zoom=1.5)
    except Exception as error:  # noqa: BLE001  the message matters more than its plot
        _log.debug("rldk: a notification goes without its plot: %s", error)
        return None


def _panel(source: Source, incident: Incident, members: Sequence[Anomaly]) -> Panel | None:
    from rldk.present.incidents import marks_of, panels_showing
    from rldk.present.plots.build import finish, panels_of
    from rldk.present.plots.picture import plot

    marks = marks_of([incident])
    members = sorted(members, key=lambda one: one.severity != "critical")  # the worst is shown
    wanted = panels_showing(one.type for one in members)
    named = [name for one in members for name in one.evidence if name in source.names()]
    if named and not wanted:
        panel = plot(source, named[0]).panels[0]
        finish([panel], source, marks)
        return panel
    there = {panel.key: panel for panel in panels_of(source, marks=marks, only=[*wanted, *_FALLBACK])}
    found = next((there[key] for key in (*wanted, *_FALLBACK) if key in there), None)
    return None if found is None else _without_target(found)


def _without_target(panel: Panel) -> Panel:
    """A message holds no settings of the run, and a KL target is one."""
    from rldk.present.plots.build import KL_TITLE

    panel.curves = [curve for curve in panel.curves if curve.metric != "target_kl"]
    panel.levels = [level for level in panel.levels if level.label != "target"]
    panel.title = KL_TITLE if panel.key == "kl" else panel.title
    return panel
