"""One picture of the figures: for each tool, how many failing runs it detects and how many sound ones it disturbs."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from rldk.present.palette import LIGHT

__all__ = ["write_plot"]

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 620, 400, 64, 52, 34, 110
COLOURS = LIGHT.series


def write_plot(out: Path, figures: dict[str, Any]) -> None:
    """Detected against disturbed on *judge*: from event logs (filled) and from plain logs (hollow), with 95 % intervals."""
    tools = list(figures["judge"]["events"])
    parts = [_axes()]
    for log in ("plain", "events"):
        for number, tool in enumerate(tools):
            told, false = (figures["judge"][log][tool][name] for name in ("told", "false_any"))
            parts.append(_point(told, false, COLOURS[number % len(COLOURS)], log == "events", tool))
    font = 'font-family="system-ui,DejaVu Sans,sans-serif" font-size="12"'
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" {font}'
    body = f'<rect width="100%" height="100%" fill="{LIGHT.paper}"/>{"".join(parts)}'
    out.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">{body}</svg>\n')


def _x(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _y(share: float) -> float:
    return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)


def _axes() -> str:
    lines = []
    for tenth in range(0, 11, 2):
        share = tenth / 10
        lines.append(f'<line x1="{_x(share)}" x2="{_x(share)}" y1="{_y(0)}" y2="{_y(1)}" stroke="{LIGHT.grid}"/>')
        lines.append(f'<line x1="{_x(0)}" x2="{_x(1)}" y1="{_y(share)}" y2="{_y(share)}" stroke="{LIGHT.grid}"/>')
        lines.append(f'<text x="{_x(share)}" y="{_y(0) + 16}" text-anchor="middle" fill="{LIGHT.soft}">{tenth * 10} %</text>')
        lines.append(f'<text x="{_x(0) - 6}" y="{_y(share) + 4}" text-anchor="end" fill="{LIGHT.soft}">{tenth * 10} %</text>')
    across = "HEALTHY and HARMLESS runs with any alarm (less is better)"
    lines.append(f'<text x="{_x(0.5)}" y="{HEIGHT - 12}" text-anchor="middle" fill="{LIGHT.ink}">{across}</text>')
    said = "FAILING runs detected, judge split (filled: event logs, hollow: plain logs; bars: 95 % intervals)"
    return "".join(lines) + f'<text x="{LEFT - 50}" y="18" fill="{LIGHT.ink}">{said}</text>'


def _point(told: dict[str, Any], false: dict[str, Any], colour: str, filled: bool, tool: str) -> str:
    x, y = _x(false["value"]), _y(told["value"])
    (left, right), (low, high) = (_x(end) for end in false["interval"]), (_y(end) for end in told["interval"])
    bars = f'<path d="M{left:.1f} {y:.1f}H{right:.1f}M{x:.1f} {low:.1f}V{high:.1f}" stroke="{colour}" stroke-opacity="0.45"/>'
    inside = colour if filled else LIGHT.paper
    dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" stroke="{colour}" stroke-width="2" fill="{inside}"/>'
    name = f'<text x="{x + 9:.1f}" y="{y - 7:.1f}" fill="{colour}">{escape(tool)}</text>' if filled else ""
    return bars + dot + name
