"""Zooming into one plot brings back the detail of that range, in all plots: the browser says what range it shows."""

from __future__ import annotations

from typing import Any

import streamlit as st

__all__ = ["SPAN", "make_component", "watch_zoom"]

SPAN = "rldk_span"

_JS = """
export default function(component) {
  const { setTriggerValue } = component;
  const say = (event) => {
    if (!event) return;
    if (event['xaxis.autorange']) { setTriggerValue('span', {all: true}); return; }
    const range = event['xaxis.range'] || [event['xaxis.range[0]'], event['xaxis.range[1]']];
    const [low, high] = range.map(Number);  // a relayout of something else gives NaN
    if (Number.isFinite(low) && Number.isFinite(high) && high > low) setTriggerValue('span', {low, high});
  };
  const plots = new Set();
  const find = () => document.querySelectorAll('.js-plotly-plot').forEach((plot) => {
    if (plots.has(plot) || typeof plot.on !== 'function') return;
    plots.add(plot);
    plot.on('plotly_relayout', say);
  });
  find();
  const timer = setInterval(find, 300);
  return () => {
    clearInterval(timer);
    plots.forEach((plot) => plot.removeListener && plot.removeListener('plotly_relayout', say));
  };
}
"""


def make_component() -> Any:
    """The listener, registered once."""
    return st.components.v2.component("rldk_zoom", js=_JS)


def watch_zoom(component: Any, key: str) -> None:
    """Put the listener on the page; a range that the user zooms to is kept in the session."""

    def changed() -> None:
        told = st.session_state.get(key)
        given = getattr(told, "span", None)
        if not given:
            return
        if given.get("all"):
            st.session_state[SPAN] = None
        else:
            low, high = float(given["low"]), float(given["high"])
            st.session_state[SPAN] = (low, high) if high > low else None

    component(key=key, on_span_change=changed)

