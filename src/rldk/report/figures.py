"""What a figure of the page is made of: a picture that needs no script, and its points for the script that zooms."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

import numpy as np
from markupsafe import Markup

from rldk.core.text import clean
from rldk.present.plots.panel import Curve, FloatArray, Panel
from rldk.present.plots.svg import Frame, svg
from rldk.report.overlay import Overlay

__all__ = ["overlay_points", "picture", "points", "to_json"]

_WIDTH, _HEIGHT = 480, 215


def picture(panel: Panel) -> Markup:
    """A panel as a picture without title and legend, which the page writes itself."""
    return Markup(svg(panel, _WIDTH, _HEIGHT, titled=False))


def points(panel: Panel) -> Markup:
    """The points of a panel as JSON for the script that zooms, without any `<`, so that nothing can end the element early."""
    return to_json({**_axes(panel), "curves": [_curve(curve) for curve in panel.curves]})


def overlay_points(overlay: Overlay) -> Markup:
    """The same for a figure with many runs: each curve has the number of its run, and there are the curves of groups."""
    runs = [{**_drawn(curve), "run": curve.colour, "label": clean(curve.label, 40)} for curve in overlay.panel.curves]
    groups = {
        name: [{"name": clean(curve.run, 60), "colour": curve.colour, **_drawn(curve)} for curve in curves]
        for name, curves in overlay.groups.items()
    }
    return to_json({**_axes(overlay.drawn), "overlay": True, "curves": runs, "groups": groups})


def to_json(value: object) -> Markup:
    """JSON for a script, in which nothing can end the element that holds it."""
    return Markup(json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))


def _axes(panel: Panel) -> dict[str, Any]:
    frame = Frame(panel, _WIDTH, _HEIGHT, titled=False)
    return {
        "frame": [frame.left, frame.top, frame.right, frame.bottom, frame.height],
        "x": [frame.x.low, frame.x.high],
        "axis": panel.x_label,
        "xlog": panel.x_log,
        "log": panel.log,
        "limits": panel.limits,
        "levels": [[level.y, level.label] for level in panel.levels],
        "marks": [[mark.x, clean(mark.label, 3), mark.severity, clean(mark.text, 200)] for mark in panel.marks],
    }


def _curve(curve: Curve) -> dict[str, Any]:
    """A curve with its name and colour."""
    return {"name": clean(curve.name, 60), "colour": curve.colour, **_drawn(curve)}


def _drawn(curve: Curve) -> dict[str, Any]:
    """The line and the bands; what most curves have in common is left out."""
    made: dict[str, Any] = {"y": _numbers(curve.y), **_places(curve.x)}
    if curve.style != "solid":
        made["style"] = curve.style
    if curve.bands:
        made["bands"] = [[_numbers(band.low), _numbers(band.high), band.label] for band in curve.bands]
    return made


def _places(x: FloatArray) -> dict[str, Any]:
    """The x values; of values at equal distances only the ends."""
    if len(x) > 2 and np.ptp(np.diff(x)) <= 1e-6 * abs(x[-1] - x[0]):
        return {"ends": [_number(float(x[0]), 9), _number(float(x[-1]), 9)]}
    return {"x": _numbers(x)}


def _numbers(values: FloatArray) -> list[float | int | None]:
    """Numbers in as many digits as a screen can show, more where they differ only in the last; what is not finite is null."""
    finite = values[np.isfinite(values)]
    near = len(finite) and finite.max() / 2 - finite.min() / 2 < 0.02 * np.abs(finite).max()
    digits = 9 if near else 5
    return [_number(value, digits) for value in values.tolist()]


def _number(value: float, digits: int) -> float | int | None:
    if not isfinite(value):
        return None
    return int(value) if value == int(value) and abs(value) < 1e15 else float(f"{value:.{digits}g}")
