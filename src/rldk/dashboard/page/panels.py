"""A run as the page shows it, and its panels: in which range, with which marks, and how smooth."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np

from rldk.core.anomaly import Anomaly
from rldk.core.text import clean
from rldk.dashboard.client import Client, RemoteRun
from rldk.judge.incidents.incident import Incident
from rldk.present.incidents import ALWAYS_SHOWN, Moment, evidence_keys, marks_of, panels_showing, worst_incident
from rldk.present.plots.build import other_panels, panels_of
from rldk.present.plots.panel import Curve, FloatArray, Mark, Panel
from rldk.present.plots.standard import MAIN_PANELS

__all__ = ["RunView", "evidence_panels", "overview_panels", "panels_for", "smoothed"]

_MAX_MARKS = 12
BUCKETS = 220  # about one per two pixels of a plot


@dataclass(slots=True)
class RunView:
    """A run, and how the user wants to see it.

    `state` is what the reader says of it (see `RunReader.state`); `others` are the runs it is compared with.
    """

    client: Client
    key: str
    state: dict[str, Any]
    others: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    span: tuple[float, float] | None = None
    smoothing: float = 0.0
    dark: bool = False
    axis: str = "step"

    @property
    def run(self) -> str | None:
        """Which run of its file it is."""
        return self.state.get("key_of_run")

    @property
    def label(self) -> str:
        """The name it is shown by."""
        return str(self.state.get("run_id") or self.key)

    @property
    def incidents(self) -> list[Incident]:
        """What went wrong so far, the earliest first."""
        return msgspec.convert(self.state.get("incidents") or [], list[Incident])

    def acknowledgement(self, incident: Incident) -> dict[str, Any] | None:
        """The acknowledgement of an incident, if someone has accepted it."""
        pairs = zip(self.state.get("incidents") or [], self.state.get("acknowledged") or [], strict=False)
        return next((known for one, known in pairs if one["index"] == incident.index), None)

    def story(self, incident: Incident) -> list[Moment]:
        """What was seen in an incident, in the order in which it began; empty for one of long ago."""
        stories = self.state.get("stories") or []
        latest = (self.state.get("incidents") or [])[-len(stories) :] if stories else []
        pairs = zip(latest, stories, strict=True)
        told: list[dict[str, Any]] = next((told for one, told in pairs if one["index"] == incident.index), [])
        return [Moment(Anomaly.from_dict(one["anomaly"]), one["began"], one["first"]) for one in told]

    @property
    def alerts(self) -> list[Incident]:
        """The incidents that stand now and that nobody has acknowledged."""
        return [one for one in self.incidents if one.recovered_step is None and self.acknowledgement(one) is None]

    @property
    def range_name(self) -> str:
        """The unit of the axis, as the name of a range."""
        return "Hours" if self.axis == "hours" else "Steps"

    @property
    def revision(self) -> str:
        """What a zoom belongs to: the browser keeps the user's zoom as long as this stays the same."""
        low, high = self.span or (None, None)
        return f"{self.key}|{self.run}|{self.axis}|{low}|{high}"

    def ask(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The reader's answer to a question about this run."""
        return self.client.ask(name, key=self.key, run=self.run, **arguments)

    def runs(self) -> list[RemoteRun]:
        """The runs as the panels see them, this one first; those of the same name are shown by their files."""
        found = [(self.key, self.state), *self.others]
        labels = [str(state.get("run_id") or key) for key, state in found]
        return [
            RemoteRun(
                self.client, key, state.get("key_of_run"), state.get("drawn", ()),
                label if labels.count(label) == 1 else key, self.axis,
            )
            for (key, state), label in zip(found, labels, strict=True)
        ]  # fmt: skip

    def marks(self) -> list[Mark]:
        """The latest incidents as marks on the curves, by the numbers of their cards."""
        incidents = self.incidents
        shown = [replace(incident, title=clean(incident.title, 200)) for incident in incidents[-_MAX_MARKS:]]
        return marks_of(shown, len(incidents) - len(shown) + 1)


def panels_for(
    view: RunView, only: Collection[str] | None = None, groups: Collection[str] | None = None, others: bool = False,
    marks: Sequence[Mark] | None = None,
) -> list[Panel]:  # fmt: skip
    """The standard panels of a run in the chosen range; with `others`, also the metrics that have no panel of their own."""
    runs, span, marks = view.runs(), view.span, view.marks() if marks is None else marks
    panels = panels_of(list(runs), buckets=BUCKETS, span=span, marks=marks, only=only)
    if others:
        panels += other_panels(runs[0], buckets=BUCKETS, marks=marks)
    for panel in panels:
        panel.marks = [mark for mark in panel.marks if span is None or span[0] <= mark.x <= span[1]]
    return [panel for panel in panels if groups is None or panel.group in groups]


def overview_panels(view: RunView) -> list[Panel]:
    """The curves that show the worst incident, then the most important ones; the first few of all if the run has none of them."""
    worst = worst_incident(view.alerts or view.incidents)
    types = [] if worst is None else [moment.anomaly.type for moment in view.story(worst)]
    by_key = {panel.key: panel for panel in panels_for(view, only={*panels_showing(types), *MAIN_PANELS})}
    guilty = evidence_keys(types, by_key) if types else []
    shown = [*guilty, *(key for key in MAIN_PANELS if key in by_key and key not in guilty)]
    return [by_key[key] for key in shown] or panels_for(view, others=True)[:6]


def evidence_panels(view: RunView, incident: Incident, number: int) -> list[Panel]:
    """The panels that show one incident, chosen as in the report: what moved first comes first, and only it is marked."""
    types = [moment.anomaly.type for moment in view.story(incident)]
    found = panels_for(view, only={*panels_showing(types), *ALWAYS_SHOWN}, marks=marks_of([incident], number))
    by_key = {panel.key: panel for panel in found}
    return [by_key[key] for key in evidence_keys(types, by_key)]


def smoothed(panel: Panel, weight: float) -> Panel:
    """The panel with a smooth line over each curve: an exponential mean of its points; the curve itself becomes faint."""
    if not weight:
        return panel
    curves: list[Curve] = []
    for curve in panel.curves:
        curves.append(replace(curve, style="faint", bands=()))
        curves.append(replace(curve, y=_exponential_mean(curve.y, weight), label=f"{curve.label}, smooth"))
    return replace(panel, curves=curves)


def _exponential_mean(values: FloatArray, weight: float) -> FloatArray:
    """Without the bias towards 0 at the start; a value that is not finite stays a gap, and the mean continues after it."""
    made = np.full(len(values), np.nan)
    mean, total = 0.0, 0.0
    for place, value in enumerate(values.tolist()):
        if np.isfinite(value):
            mean = weight * mean + (1.0 - weight) * value
            total = weight * total + (1.0 - weight)
            made[place] = mean / total
    return made
