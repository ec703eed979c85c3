"""The selected runs over each other: one panel per metric, one curve per run or per group of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import streamlit as st

from rldk.comparison.grouping import ALL_SETTINGS, group_names
from rldk.core.text import clean, counted, short_number
from rldk.dashboard.client import Client
from rldk.dashboard.page import address
from rldk.dashboard.page.html import note
from rldk.dashboard.page.panels import smoothed
from rldk.dashboard.page.plots import SPAN, draw_plots, show_range
from rldk.dashboard.page.run_rows import Row, RunRows, matching, rows_of, short_names
from rldk.dashboard.processes import numbers
from rldk.present.palette import DARK, LIGHT
from rldk.present.plots.build import KL_TITLE, metric_unit, needs_log
from rldk.present.plots.groups import BAND
from rldk.present.plots.panel import STYLES, Band, Curve, Panel
from rldk.present.plots.standard import MAIN_PANELS, STANDARD

__all__ = ["BEHIND", "draw_overlay"]

BEHIND = "rldk_behind"
_SCALES = {"auto": "Y: auto", "linear": "Y: linear", "log": "Y: log"}
_MAX_PANELS = 60
_MAIN_BY_ANY = ("gradients", "losses", "accuracy")  # main panels of which any curve will do: the first that the runs have
_ALL_POINTS, _MIN_BUCKETS, _MAX_BUCKETS = 8_000, 40, 220
_FAINT_BELOW = 5  # with more runs than this, the raw curves below smooth ones would hide them


@dataclass(frozen=True, slots=True)
class OverlayView:
    """How the plots of the selection are drawn."""

    span: tuple[float, float] | None
    dark: bool
    revision: str
    smoothing: float = 0.0
    label: str = "runs"


@dataclass(frozen=True, slots=True)
class Described:
    """What is known of a metric: the title and unit of its panel, and its place among them."""

    title: str
    unit: str
    group: str
    place: int
    may_be_log: bool
    is_main: bool


def draw_overlay(client: Client, dark: bool) -> None:
    """The controls and the panels of the selected runs."""
    found = rows_of(client)
    selected = found.of(st.session_state["rldk_selected"])
    if not selected:
        return
    ids = [row["id"] for row in selected]
    known = client.ask("metrics", runs=ids)
    _remember_behind(int(known.get("behind", 0)))
    if known.get("problem") or not known.get("metrics"):
        waiting = "Reading the logs …" if known.get("behind") else "The selected runs have not logged a number yet."
        note(str(known.get("problem") or waiting))
        return
    groups = _controls(found, selected, list(known["metrics"]))
    axis = _axis(known)
    span = st.session_state.get(SPAN) if axis == st.session_state["rldk_axis"] else None
    metrics, more = _chosen(known["metrics"])
    x_log = bool(st.session_state["rldk_x_log"]) and axis != "time"
    buckets = min(_MAX_BUCKETS, max(_MIN_BUCKETS, _ALL_POINTS // len(ids)))
    answer = client.ask(
        "curves", runs=ids, metrics=metrics, axis=axis, span=None if span is None else list(span), buckets=buckets,
        groups=groups, x_log=x_log,
    )  # fmt: skip
    if answer.get("problem"):
        note(str(answer["problem"]))
        return
    series = _series(selected, groups)
    panels = [_panel(name, answer["curves"].get(name, ()), series, axis, x_log) for name in metrics]
    panels = [_as_smooth(panel, st.session_state["rldk_smoothing"]) for panel in panels if panel.curves]
    _remarks(known, len(ids), axis, more)
    _show_range(span, axis)
    palette = DARK if dark else LIGHT
    legend = [{"run": label, "label": label, "colour": palette.curve(place)} for label, place in series.values()]
    revision = f"{axis}|{x_log}|{span}"
    draw_plots(OverlayView(span, dark, revision), panels, "overlay", "No metric matches the search.", legend=legend, on_pin=_pin)
    address.write(address.TABLE_PAGE)


def _remember_behind(behind: int) -> None:
    """Whether logs are still being read: the page is then drawn once more, to ask again by itself from then on."""
    if behind and not st.session_state.get(BEHIND):
        st.session_state[BEHIND] = True
        st.rerun()
    st.session_state[BEHIND] = bool(behind)


def _controls(found: RunRows, selected: list[Row], metrics: list[str]) -> dict[str, str] | None:
    search, pins, group = st.columns([2, 3, 2], vertical_alignment="bottom")
    search.text_input(
        "Metrics", key="rldk_metric_search", placeholder="Search metrics", max_chars=300,
        help="A regular expression; it searches all metrics, also those that are not shown by default.",
    )  # fmt: skip
    address.keep_known("rldk_pinned", metrics)
    pins.multiselect(
        "Pinned panels", sorted(metrics), key="rldk_pinned", placeholder="none",
        help="Shown first, whatever is searched for. The pin above a plot does the same.",
    )  # fmt: skip
    choices = _group_choices(found)
    if st.session_state["rldk_group_by"] not in choices:
        st.session_state["rldk_group_by"] = ""
    by = group.selectbox(
        "Group by", list(choices), format_func=choices.__getitem__, key="rldk_group_by",
        help="Each group is drawn as its mean, with a band of one standard deviation between its runs.",
    )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.segmented_control(
            "Y axis", list(_SCALES), required=True, key="rldk_y_scale", format_func=_SCALES.__getitem__,
            label_visibility="collapsed",
        )  # fmt: skip
        st.toggle("Log x", key="rldk_x_log")
        st.toggle("All metrics", key="rldk_all_metrics")
    return _groups(selected, by or "")


def _group_choices(found: RunRows) -> dict[str, str]:
    made = {"": "each run"}
    if found.settings:
        made[ALL_SETTINGS] = "settings, over seeds"
    made |= {f"config.{name}": clean(name, 60) for name in found.settings}
    return {**made, "verdict": "verdict", "framework": "framework"}


def _groups(selected: list[Row], by: str) -> dict[str, str] | None:
    """The group of each run; `None` where each run stands for itself."""
    if not by:
        return None
    if by in ("verdict", "framework"):
        names: list[str | None] = [str(row[by] or "unknown") for row in selected]
    else:
        names = group_names([row["config"] for row in selected], by)
    return {row["id"]: clean(name or "unknown", 120) for row, name in zip(selected, names, strict=True)}


def _axis(known: dict[str, Any]) -> str:
    """The axis that was asked for, if all runs have it."""
    wanted = str(st.session_state["rldk_axis"])
    possible = wanted == "step" or known["dated" if wanted == "time" else "timed"]
    if not possible:
        note("The curves are drawn by step: not every selected log has times.")
    return wanted if possible else "step"


def _chosen(counts: dict[str, int]) -> tuple[list[str], int]:
    """The metrics to show, pinned ones first; and how many more there are."""
    names = sorted(counts, key=lambda name: (described(name).place, name))
    pattern = st.session_state["rldk_metric_search"]
    if pattern.strip():
        there, problem = matching([f"{name} {described(name).title}" for name in names], pattern)
        if problem:
            note(problem)
        shown = [name for name, one in zip(names, there, strict=True) if one]
    elif st.session_state["rldk_all_metrics"]:
        shown = names
    else:
        shown = _first_of_each([name for name in names if described(name).is_main]) or names[:6]
    pinned = [name for name in st.session_state["rldk_pinned"] if name in counts]
    made = list(dict.fromkeys([*pinned, *shown]))[:_MAX_PANELS]
    return made, len(counts) - len(made)


def _first_of_each(names: list[str]) -> list[str]:
    """One metric per standard panel."""
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(described(name).group, name)
    return list(first.values())


@cache
def described(metric: str) -> Described:
    """What the table of standard panels and the catalogue say of a metric."""
    for place, spec in enumerate(STANDARD):
        for number, curve in enumerate(spec.curves):
            if metric in curve.metrics.split():
                title = KL_TITLE if spec.key == "kl" else spec.title
                label = curve.label.split("|")[0]
                named = title if len(spec.curves) == 1 or number == 0 else f"{title}: {label}"
                is_main = spec.key in _MAIN_BY_ANY or (spec.key in MAIN_PANELS and number == 0)
                return Described(named, spec.unit, spec.key, 100 * place + number, spec.log, is_main)
    return Described(metric, metric_unit(metric), metric, 100_000, True, False)


def _series(selected: list[Row], groups: dict[str, str] | None) -> dict[str, tuple[str, int]]:
    """What is drawn: for each run or group its label, which is unique, and its colour."""
    if groups is not None:
        counts: dict[str, int] = {}
        for name in groups.values():
            counts[name] = counts.get(name, 0) + 1
        return {name: (f"{name} ({counted(number, 'run')})", place) for place, (name, number) in enumerate(counts.items())}
    names = short_names(selected)
    return {row["id"]: (name, place) for place, (row, name) in enumerate(zip(selected, names, strict=True))}


def _panel(metric: str, drawn: Sequence[dict[str, Any]], series: dict[str, tuple[str, int]], axis: str, x_log: bool) -> Panel:
    about = described(metric)
    many = len(LIGHT.series)
    curves = []
    for one in drawn:
        label, place = series.get(one["series"], (str(one["series"]), 0))
        x, y = numbers(one["x"]), numbers(one["y"])
        bands = (Band(numbers(one["low"]), numbers(one["high"]), BAND),) if one.get("runs", 1) > 1 else ()
        style = STYLES[min(place // many, len(STYLES) - 1)]  # colours repeat after the last, with another line
        curves.append(Curve(metric, metric, 1000.0 * x if axis == "time" else x, y, bands, style, place, run=label))
    panel = Panel(metric, about.group, about.title, about.unit, curves, x_label=axis, x_log=x_log)
    scale = st.session_state["rldk_y_scale"]
    panel.log = scale == "log" or (scale == "auto" and about.may_be_log and needs_log(panel))
    return panel


def _as_smooth(panel: Panel, weight: float) -> Panel:
    made = smoothed(panel, weight)
    if weight and len(panel.curves) > _FAINT_BELOW:
        made.curves = [curve for curve in made.curves if curve.label.endswith(", smooth")]
    return made


def _remarks(known: dict[str, Any], wanted: int, axis: str, more: int) -> None:
    parts = []
    if known.get("behind"):
        parts.append(f"{counted(known['behind'], 'log')} still being read")
    if missing := wanted - len(known["runs"]) - int(known.get("behind", 0)):
        parts.append(f"{counted(missing, 'run')} without curves")
    if more > 0:
        parts.append(f"{counted(more, 'metric')} not shown")
    if axis == "time":
        parts.append("times are in UTC")
    if parts:
        st.caption(" · ".join(parts))


def _show_range(span: tuple[float, float] | None, axis: str) -> None:
    if span is None:
        return
    unit = {"step": "Steps", "hours": "Hours", "time": "Seconds since 1970"}[axis]
    ends = " to ".join(short_number(end, 10) for end in span)
    show_range(f"{unit} {ends}.", "Whole runs", "rldk_whole_runs")


def _pin(metric: str) -> None:
    pinned = list(st.session_state["rldk_pinned"])
    st.session_state["rldk_pinned"] = [one for one in pinned if one != metric] if metric in pinned else [*pinned, metric]
