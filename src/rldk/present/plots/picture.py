"""`run.plot()`: the panels of a run in a notebook, with its incidents marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rldk.comparison.grouping import run_groups
from rldk.core.catalog import entry_of
from rldk.core.errors import UsageError
from rldk.core.files import file_name
from rldk.core.text import counted, near_names
from rldk.judge.result import Result
from rldk.judge.scan import judge_run
from rldk.present.incidents import marks_of
from rldk.present.palette import DARK, LIGHT
from rldk.present.plots.build import BUCKETS, finish, metric_panel, other_panels, panels_of
from rldk.present.plots.groups import group_panels
from rldk.present.plots.panel import Curve, Mark, Panel
from rldk.present.plots.plotly_figure import plotly_figure
from rldk.present.plots.source import RunSource, Source, Span, check_axis, is_timed
from rldk.present.plots.svg import png, svg
from rldk.runs.run import Run

if TYPE_CHECKING:
    import plotly.graph_objects as go

__all__ = ["Picture", "plot"]

_LONG = 200_000

Plottable = Run | Result | Source


@dataclass(slots=True, repr=False)
class Picture:
    """Some panels. A notebook displays it; `plotly` gives interactive figures, `save` writes files."""

    panels: list[Panel]

    def __len__(self) -> int:
        return len(self.panels)

    def __iter__(self) -> Iterator[Panel]:
        return iter(self.panels)

    def __getitem__(self, key: str) -> Panel:
        for panel in self.panels:
            if panel.key == key:
                return panel
        raise KeyError(f"no panel {key!r}; there is {', '.join(panel.key for panel in self.panels)}")

    def __repr__(self) -> str:
        """One line; a notebook displays the panels themselves."""
        keys = ", ".join(panel.key for panel in self.panels)
        return f"<Picture of {counted(len(self.panels), 'panel')}: {keys}; .save(path) writes it>"

    def _repr_html_(self) -> str:
        """The panels side by side, in the light or dark colours of the notebook."""
        style = (
            f".rldk-plots{{{LIGHT.variables()}display:flex;flex-wrap:wrap;gap:12px}}.rldk-plots svg{{max-width:100%;height:auto}}"
        )
        dark = f"@media (prefers-color-scheme:dark){{.rldk-plots{{{DARK.variables()}}}}}"
        shown = "".join(svg(panel, 480, 240) for panel in self.panels)
        return f'<style>{style}{dark}</style><div class="rldk-plots">{shown or "no metric to plot"}</div>'

    def plotly(self, *, dark: bool = False) -> list[go.Figure]:
        """The panels as Plotly figures (needs `rldk[dashboard]`)."""
        return [plotly_figure(panel, dark=dark) for panel in self.panels]

    def save(self, path: str | Path) -> Path:
        """Write one panel as `.svg` or `.png`, or all of them into a folder as PNG."""
        target = Path(path)
        if target.suffix.lower() in (".svg", ".png"):
            if len(self.panels) != 1:
                raise UsageError(f"Expected one panel to write to {target}, got {len(self.panels)}; name it, or give a folder.")
            panel = self.panels[0]
            is_png = target.suffix.lower() == ".png"
            target.write_bytes(png(panel) if is_png else svg(panel, palette=LIGHT).encode("utf-8", "replace"))
            return target
        target.mkdir(parents=True, exist_ok=True)
        for panel in self.panels:
            (target / f"{file_name(panel.key)}.png").write_bytes(png(panel))
        return target


def plot(
    runs: Plottable | Sequence[Plottable], *names: str, marks: bool = True, axis: str = "step",
    group_by: str | Sequence[str] | None = None, **options: Any,
) -> Picture:  # fmt: skip
    """The panels of a run or of a result, or of several drawn over each other.

    Args:
        names: keys of standard panels (`kl`, `reward`) or metrics of the run; by default all standard panels.
        marks: judge the run and mark its incidents; not for several runs, and not for more than 200 000 events.
        axis: `step`, or `hours` since the run began; `step` if one of the runs has no times in its log.
        group_by: draw the mean and a band of one standard deviation of the runs that share this setting, such as `config.lr`;
            `config` for all settings but the seed. A list names the group of each run.
        options: other arguments of `panels_of`, such as `span=(100, 200)`, `buckets`, `kl_target` or `x_log`.
    """
    given = list(runs) if isinstance(runs, Sequence) else [runs]
    if group_by is not None:
        return Picture(_grouped(given, names, axis, group_by, options))
    found = _marks(given[0]) if marks and len(given) == 1 else []
    sources = sources_of([one.run if isinstance(one, Result) else one for one in given], axis)
    panels = panels_of(sources, marks=found, only=names or None, **options)
    known = {panel.key for panel in panels}
    for name in names:
        if name not in known:
            panels.append(_metric_panel(name, sources, found, **_of_one_metric(options)))
    if not names and not panels:
        panels = other_panels(sources[0], marks=found, **_of_one_metric(options))
    return Picture(panels)


def _grouped(
    given: Sequence[Plottable], names: Sequence[str], axis: str, by: str | Sequence[str], options: dict[str, Any]
) -> list[Panel]:
    """One curve per group, and a band where it has several runs."""
    runs = [one.run if isinstance(one, Result) else one for one in given]
    if not all(isinstance(run, Run) for run in runs):
        raise UsageError("Only runs that were read from logs can be grouped.")
    sources = sources_of(runs, axis)
    keys = run_groups([run for run in runs if isinstance(run, Run)], by) if isinstance(by, str) else list(by)
    groups: dict[str, list[Source]] = {}
    for key, source in zip(keys, sources, strict=True):
        groups.setdefault(key, []).append(source)
    panels = group_panels(groups, *names, **options)
    for name in names:
        if name not in {panel.key for panel in panels}:
            raise _no_metric(name, sources)
    return panels


def _marks(given: Plottable) -> list[Mark]:
    """The incidents of a result; a run is judged first, unless it is very long."""
    if isinstance(given, Result):
        return marks_of(given.incidents)
    return marks_of(judge_run(given).incidents) if isinstance(given, Run) and len(given) <= _LONG else []


def _of_one_metric(options: dict[str, Any]) -> dict[str, Any]:
    """Of the options of `panels_of`, those that hold for the panel of any metric."""
    return {name: value for name, value in options.items() if name in ("buckets", "span", "x_log")}


def _metric_panel(
    name: str, sources: Sequence[Source], marks: list[Mark], buckets: int = BUCKETS, span: Span = None, x_log: bool = False
) -> Panel:
    """A panel with one metric of the runs, by its name."""
    curves = []
    for number, source in enumerate(sources):
        if name in source.names():
            x, (y,) = source.points([name], buckets, span)
            curves.append(Curve(name, name, x, y, colour=number, run=source.run_id if len(sources) > 1 else ""))
    if not curves:
        raise _no_metric(name, sources)
    panel = metric_panel(name, curves)
    finish([panel], sources[0], marks, x_log)
    return panel


def _no_metric(name: str, sources: Sequence[Source]) -> UsageError:
    return UsageError(f"Nothing to plot as {name!r}: it is neither a panel nor a metric of the run.{_suggest(name, sources)}")


def _suggest(name: str, sources: Sequence[Source]) -> str:
    """The metrics that a wrong name is near to, also by the short names that a metric has; else those that there are."""
    there = {metric: metric for source in sources for metric in source.names()}
    short = {alias: metric for metric in there if (entry := entry_of(metric)) for alias in entry.aliases}
    known = {**short, **there}
    if near := near_names(name, known):
        return f" Did you mean {' or '.join(dict.fromkeys(known[one] for one in near))}?"
    return f" It has {', '.join(sorted(there)[:20])}."


def sources_of(runs: Sequence[Run | Source], axis: str) -> list[Source]:
    """Runs as the panels see them, all with one x axis: hours only if each of them has times."""
    timed = all(is_timed(run.wall_time) for run in runs if isinstance(run, Run))
    shared = check_axis(axis) if timed else "step"
    return [RunSource(run, shared) if isinstance(run, Run) else run for run in runs]
