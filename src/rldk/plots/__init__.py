"""Pictures of runs: neutral panels, points that keep every extreme, and renderers to SVG, PNG and Plotly."""

from __future__ import annotations

from rldk.plots.build import other_panels, panel_of, panels_of
from rldk.plots.extremes import keep_extremes
from rldk.plots.growing import GrowingRun
from rldk.plots.marks import marks_of
from rldk.plots.palette import CSS, DARK, LIGHT, Palette
from rldk.plots.panel import Band, Curve, Level, Mark, Panel
from rldk.plots.picture import Picture, plot
from rldk.plots.plotly_figure import plotly_figure
from rldk.plots.png import png
from rldk.plots.pyramid import Pyramid
from rldk.plots.source import RunSource, Source
from rldk.plots.standard import GROUPS, STANDARD
from rldk.plots.svg import svg

__all__ = [
    "CSS",
    "DARK",
    "GROUPS",
    "LIGHT",
    "STANDARD",
    "Band",
    "Curve",
    "GrowingRun",
    "Level",
    "Mark",
    "Palette",
    "Panel",
    "Picture",
    "Pyramid",
    "RunSource",
    "Source",
    "keep_extremes",
    "marks_of",
    "other_panels",
    "panel_of",
    "panels_of",
    "plot",
    "plotly_figure",
    "png",
    "svg",
]
