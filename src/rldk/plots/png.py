"""Panels as PNG, for papers and chats: the SVG, painted by resvg, which needs neither a browser nor a system library."""

from __future__ import annotations

import re

from rldk.core.errors import require
from rldk.plots.palette import DARK, LIGHT, Palette
from rldk.plots.panel import Panel
from rldk.plots.svg import svg

__all__ = ["file_name", "png"]


def png(panel: Panel, width: int = 640, height: int = 280, *, zoom: float = 2.0, dark: bool = False) -> bytes:
    """A panel as the bytes of a PNG file, `zoom` times as large as the SVG, on paper of its own."""
    resvg = require("resvg_py", extra="report", purpose="Writing PNG files")
    palette: Palette = DARK if dark else LIGHT
    picture = svg(panel, width, height, palette)
    return bytes(resvg.svg_to_bytes(svg_string=picture, background=palette.paper, zoom=zoom, font_family="DejaVu Sans"))


def file_name(text: str) -> str:
    """Text as a name of a file that stays in its folder: letters, digits, `-`, `_` and `.`, not first and not endless."""
    kept = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")
    return kept[:80] or "run"
