"""Panels as SVG, made in plain Python in the colours of the page around it, and as PNG."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import numpy as np

from rldk.core.errors import require
from rldk.core.text import clean
from rldk.present.palette import CSS, DARK, LIGHT, Palette
from rldk.present.plots.panel import Curve, FloatArray, Panel
from rldk.present.plots.scale import Scale, x_scale, y_scale

__all__ = ["DASHES", "Frame", "legend", "png", "svg"]

FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif"
DASHES = {"solid": "", "dashed": "6 4", "faint": "2 3"}
_RANKS = {"critical": 0, "warning": 1, "good": 2}
_GLYPH = 6.4
_LEFT, _RIGHT, _BOTTOM = 54.0, 14.0, 26.0


class Frame:
    """The layout of a panel: where its parts lie."""

    def __init__(self, panel: Panel, width: int, height: int, titled: bool) -> None:
        self.height, self.titled = height, titled
        self.legend = legend_rows(panel, width - _LEFT - _RIGHT) if titled else []
        top = (26.0 if titled else 6.0) + 17.0 * len(self.legend) + (14.0 if panel.marks else 4.0)
        self.left, self.right, self.top, self.bottom = _LEFT, width - _RIGHT, top, height - _BOTTOM
        self.x = x_scale(panel, self.left, self.right)
        self.y = y_scale(panel, self.top, self.bottom)


def svg(panel: Panel, width: int = 640, height: int = 280, palette: Palette = CSS, *, titled: bool = True) -> str:
    """A panel as one `<svg>` element, with its description in it.

    With the palette `CSS` the colours are variables that the page sets (`Palette.variables`); a picture by itself needs
    `LIGHT` or `DARK`. A page that writes title and legend itself passes `titled=False`.
    """
    frame = Frame(panel, width, height, titled)
    inside = "".join((*_ground(panel, frame, palette), *_drawing(panel, frame, palette), *_marks(panel, frame, palette)))
    name = escape(panel.alt, quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{name}" font-family="{escape(FONT, quote=True)}" font-size="11">{inside}</svg>'
    )


def png(panel: Panel, *, zoom: float = 2.0, dark: bool = False) -> bytes:
    """A panel as the bytes of a PNG file, `zoom` times as large as the SVG, painted by resvg: no browser, no system library."""
    resvg = require("resvg_py", extra="report", purpose="Writing PNG files")
    palette: Palette = DARK if dark else LIGHT
    picture = svg(panel, palette=palette)
    return bytes(resvg.svg_to_bytes(svg_string=picture, background=palette.paper, zoom=zoom, font_family="DejaVu Sans"))


def legend(panel: Panel) -> list[tuple[str, Curve]]:
    """The entries of a legend: the name of each curve with its bands. A single curve without a band needs no legend."""
    several = len({curve.label for curve in panel.curves}) > 1
    entries = []
    for curve in panel.curves:
        spans = ", ".join(band.label for band in curve.bands)
        name = clean(curve.run, 28) + (f" · {clean(curve.label, 40)}" if several else "") if curve.run else clean(curve.label, 40)
        entries.append((f"{name} ({spans})" if spans else name, curve))
    return [] if len(entries) == 1 and not entries[0][1].bands else entries


def legend_rows(panel: Panel, width: float) -> list[list[tuple[str, Curve | None]]]:
    """The legend in rows that fit."""
    entries: list[tuple[str, Curve | None]] = list(legend(panel))
    if not entries:
        return []
    if len(entries) > 10:
        entries = [*entries[:9], (f"and {len(entries) - 9} more", None)]
    rows: list[list[tuple[str, Curve | None]]] = [[]]
    used = 0.0
    for entry in entries:
        needed = 34 + _GLYPH * len(entry[0])
        if rows[-1] and used + needed > width:
            rows.append([])
            used = 0.0
        rows[-1].append(entry)
        used += needed
    return rows


def _ground(panel: Panel, frame: Frame, palette: Palette) -> Iterator[str]:
    """Title, legend, grid and tick labels."""
    if frame.titled:
        unit = (
            f'<tspan dx="6" fill="{palette.soft}" font-weight="400" font-size="11">{escape(panel.unit)}</tspan>'
            if panel.unit
            else ""
        )
        yield f'<text x="{_LEFT - 46:g}" y="17" font-size="14" font-weight="600" fill="{palette.ink}">{escape(clean(panel.title, 60))}{unit}</text>'
    for number, row in enumerate(frame.legend):
        x, y = _LEFT, 36.0 + 17 * number
        for text, curve in row:
            if curve is not None:
                yield _stroke(f"M{x:g} {y - 4:g}h18", palette.curve(curve.colour), curve.style)
            yield f'<text x="{x + 23:g}" y="{y:g}" fill="{palette.soft}">{escape(text)}</text>'
            x += 34 + _GLYPH * len(text)
    yield '<g class="axes">'
    for value, text in frame.y.ticks(4):
        y = frame.y.place(value)
        yield f'<path class="grid" d="M{frame.left:g} {y:.1f}H{frame.right:g}" stroke="{palette.grid}" fill="none"/>'
        yield f'<text class="tick" x="{frame.left - 6:g}" y="{y + 3.5:.1f}" text-anchor="end" fill="{palette.soft}">{text}</text>'
    yield f'<text x="{frame.left - 14:g}" y="{frame.height - 9:g}" text-anchor="end" fill="{palette.soft}">{escape(panel.x_label)}</text>'
    for value, text in frame.x.ticks(max(2, int((frame.right - frame.left) // 90))):
        yield f'<text class="tick" x="{frame.x.place(value):.1f}" y="{frame.height - 9:g}" text-anchor="middle" fill="{palette.soft}">{text}</text>'
    yield "</g>"


def _drawing(panel: Panel, frame: Frame, palette: Palette) -> Iterator[str]:
    """Bands, horizontal lines and curves, the first curve on top."""
    yield '<g class="plot">'
    for curve in panel.curves:
        for band in curve.bands:
            path = area(curve.x, band.low, band.high, frame.x, frame.y)
            yield f'<path d="{path}" fill="{palette.curve(curve.colour)}" fill-opacity="0.16" stroke="none"/>'
    levels = [(level, frame.y.place(level.y)) for level in panel.levels if frame.y.low <= level.y <= frame.y.high]
    for _, y in levels:
        yield f'<path d="M{frame.left:g} {y:.1f}H{frame.right:g}" stroke="{palette.ink}" stroke-opacity="0.65" stroke-dasharray="3 3" fill="none"/>'
    for curve in reversed(panel.curves):
        yield _stroke(line(curve.x, curve.y, frame.x, frame.y), palette.curve(curve.colour), curve.style)
        yield from _broken(curve, frame, palette)
    for level, y in levels:  # labels over the curves, so that they can be read
        yield f'<text x="{frame.right - 2:g}" y="{y - 4:.1f}" text-anchor="end" fill="{palette.soft}" stroke="{palette.paper}" stroke-width="3" paint-order="stroke">{escape(level.label)}</text>'
    yield "</g>"


def _stroke(path: str, colour: str, style: str) -> str:
    dash = f' stroke-dasharray="{DASHES[style]}"' if DASHES[style] else ""
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{1.2 if style == "faint" else 1.7}"'
        f' stroke-linejoin="round" stroke-linecap="round"{dash}/>'
    )


def _broken(curve: Curve, frame: Frame, palette: Palette) -> Iterator[str]:
    """Crosses at the upper edge where a value is not finite."""
    places = sorted({round(float(x) / 8) * 8 for x in frame.x.at(curve.x[~np.isfinite(curve.y)])})
    if places:
        y = frame.top + 4
        path = "".join(f"M{x - 3:g} {y - 3:g}l6 6m0 -6l-6 6" for x in places)
        yield f'<path d="{path}" stroke="{palette.critical}" stroke-width="1.4" fill="none"><title>not a finite number</title></path>'


def _marks(panel: Panel, frame: Frame, palette: Palette) -> Iterator[str]:
    """Moments as vertical lines with a flag; of flags that would overlap, only the worst is shown."""
    taken: list[float] = []
    yield '<g class="marks">'
    for mark in sorted(panel.marks, key=lambda mark: (_RANKS[mark.severity], mark.x)):
        if not frame.x.low <= mark.x <= frame.x.high:
            continue
        x, colour = frame.x.place(mark.x), palette.severity(mark.severity)
        dash = ' stroke-dasharray="2 3"' if mark.severity == "good" else ""
        title = f"<title>{escape(clean(mark.text or mark.label))}</title>"
        yield f'<g class="mark">{title}<path d="M{x:.1f} {frame.top - 1:g}V{frame.bottom:g}" stroke="{colour}" stroke-width="1.3" fill="none"{dash}/>'
        if all(abs(x - other) >= 15 for other in taken):
            yield f'<circle cx="{x:.1f}" cy="{frame.top - 7:g}" r="7" fill="{colour}"/>'
            yield f'<text x="{x:.1f}" y="{frame.top - 3.4:g}" text-anchor="middle" font-size="10" font-weight="700" fill="{palette.paper}">{escape(clean(mark.label, 3))}</text>'
            taken.append(x)
        yield "</g>"
    yield "</g>"


def line(x: FloatArray, y: FloatArray, across: Scale, up: Scale) -> str:
    """A curve as the `d` of a path, broken where it is not finite; a single value is a dot."""
    finite = np.isfinite(y)
    xs, ys = across.at(x), up.at(np.where(finite, y, up.low))
    pieces: list[str] = []
    open_before = False
    for there, px, py in zip(finite.tolist(), xs.tolist(), ys.tolist(), strict=True):
        if there:
            pieces.append(f"{'L' if open_before else 'M'}{px:.1f} {py:.1f}" + ("" if open_before else "h0"))
        open_before = there
    return "".join(pieces)


def area(x: FloatArray, low: FloatArray, high: FloatArray, across: Scale, up: Scale) -> str:
    """A band as the `d` of a path: one shape for each stretch in which both edges are finite."""
    finite = np.isfinite(low) & np.isfinite(high)
    xs = across.at(x)
    lows, highs = (up.at(np.where(finite, side, up.low)) for side in (low, high))
    edges = np.flatnonzero(np.diff(np.concatenate(([False], finite, [False])).astype(np.int8)))
    shapes = []
    for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        there = [f"{px:.1f} {py:.1f}" for px, py in zip(xs[start:stop].tolist(), highs[start:stop].tolist(), strict=True)]
        back = [
            f"{px:.1f} {py:.1f}" for px, py in zip(xs[start:stop][::-1].tolist(), lows[start:stop][::-1].tolist(), strict=True)
        ]
        shapes.append(f"M{'L'.join([*there, *back])}Z")
    return "".join(shapes)
