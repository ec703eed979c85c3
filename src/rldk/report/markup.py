"""Pieces of HTML. Every text that comes from a log goes through `text`, and nothing else puts it on the page."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from math import isfinite

import numpy as np

from rldk.core.text import clean
from rldk.present.palette import CSS
from rldk.present.plots.panel import FloatArray, Panel
from rldk.present.plots.svg import DASHES, frame_of, legend, svg

__all__ = ["asset", "badge", "digest", "figure", "table", "text"]

_WIDTH, _HEIGHT = 480, 215


def text(value: object, most: int = 400) -> str:
    """Text of any origin as the page may hold it: cut, without control characters, and escaped."""
    return escape(clean(value, most), quote=True)


def asset(name: str) -> str:
    """A file of the report's own: its style or its script."""
    return (files("rldk.report") / "assets" / name).read_text(encoding="utf-8")


def digest(content: str) -> str:
    """What a page's policy calls a script by, so that it runs and no other does."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() + "'"


def badge(verdict: str) -> str:
    """A verdict or severity as a coloured word."""
    return f'<span class="badge {text(verdict)}">{text(verdict.replace("_", " "))}</span>'


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = (), caption: str = "") -> str:
    """A table whose cells are HTML already; the columns in `numbers` are set flush right."""

    def cell(tag: str, place: int, inside: str) -> str:
        right = ' class="number"' if place in numbers else ""
        heading = ' scope="col"' if tag == "th" else ""
        return f"<{tag}{right}{heading}>{inside}</{tag}>"

    head = "".join(cell("th", place, text(name)) for place, name in enumerate(headings))
    body = "".join("<tr>" + "".join(cell("td", place, inside) for place, inside in enumerate(row)) + "</tr>" for row in rows)
    said = f"<caption>{text(caption)}</caption>" if caption else ""
    named = text(caption or "table")
    return f'<div class="scroll" tabindex="0" role="group" aria-label="{named}"><table>{said}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def figure(panel: Panel, number: int) -> str:
    """A panel as a figure: a picture that needs no script, and beside it the points for the script that zooms."""
    unit = f' <span class="unit">{text(panel.unit, 60)}</span>' if panel.unit else ""
    picture = svg(panel, _WIDTH, _HEIGHT, titled=False)
    label = f"{panel.title}: move with the arrow keys, zoom with plus and minus, escape shows all"
    return (
        f'<figure class="panel" id="panel-{number}" tabindex="0" role="group" aria-label="{text(label)}">'
        f"<figcaption>{text(panel.title, 80)}{unit}</figcaption>{_legend(panel)}{picture}"
        f'<script type="application/json">{_json(panel)}</script></figure>'
    )


def _legend(panel: Panel) -> str:
    """Which curve is which; the words wrap where a picture's could not."""
    entries = legend(panel)
    if not entries:
        return ""
    lines = [f'<path d="M1 5h18" stroke="{CSS.curve(curve.colour)}"{dash(curve.style)}/>' for _, curve in entries[:12]]
    shown = [
        f'<li><svg viewBox="0 0 20 10" width="20" height="10" aria-hidden="true" stroke-width="2">{line}</svg>{text(name, 90)}</li>'
        for line, (name, _) in zip(lines, entries, strict=False)
    ]
    more = f"<li>and {len(entries) - 12} more</li>" if len(entries) > 12 else ""
    return f'<ul class="legend">{"".join(shown)}{more}</ul>'


def dash(style: str) -> str:
    """A style of line as an attribute."""
    return f' stroke-dasharray="{DASHES[style]}"' if DASHES[style] else ""


def _json(panel: Panel) -> str:
    """The points of a panel, for the script; no `<` in it, so that nothing can end the element early."""
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
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


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
