"""Plots of runs: panels that do not depend on how they are drawn, points that keep every extreme, and SVG, PNG and Plotly."""
