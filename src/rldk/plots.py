"""Plots of runs for notebooks and scripts: `plot(run, "kl")`, or `plot([one, other], "reward")` to compare runs."""

from __future__ import annotations

from rldk.present.plots.picture import Picture, plot

__all__ = ["Picture", "plot"]
