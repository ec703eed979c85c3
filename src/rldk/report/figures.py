"""What a figure of the page is made of: a picture that needs no script, and its points for the script that zooms."""

from __future__ import annotations

import json
from math import isfinite

import numpy as np
from markupsafe import Markup

from rldk.core.text import clean
from rldk.present.plots.panel import FloatArray, Panel
from rldk.present.plots.svg import frame_of, svg

__all__ = ["picture", "points"]

_WIDTH, _HEIGHT = 480, 215


def picture(panel: Panel) -> Markup:
    """A panel as a picture without title and legend, which the page writes itself."""
    return Markup(svg(panel, _WIDTH, _HEIGHT, titled=False))


def points(panel: Panel) -> Markup:
    """The points of a panel as JSON for the script that zooms, without any `<`, so that nothing can end the element early."""
    frame = frame_of(panel, _WIDTH, _HEIGHT, titled=False)
    value = {
        "frame": [frame.left, frame.top, frame.right, frame.bottom, frame.height],
        "x": [frame.x.low, frame.x.high],
        "axis": panel.x_label,
        "log": panel.log,
        "limits": panel.limits,
        "curves": [
            {
                "name": clean(f"{curve.run} · {curve.label}" if curve.run else curve.label, 60),
                "colour": curve.colour,
                "style": curve.style,
                "x": _numbers(curve.x),
                "y": _numbers(curve.y),
                "bands": [[_numbers(band.low), _numbers(band.high), band.label] for band in curve.bands],
            }
            for curve in panel.curves
        ],
        "levels": [[level.y, level.label] for level in panel.levels],
        "marks": [[mark.x, clean(mark.label, 3), mark.severity, clean(mark.text, 200)] for mark in panel.marks],
    }
    return Markup(json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"))


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
