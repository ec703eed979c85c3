"""The sidebar's choice of runs: the one that is shown, and those it is compared with."""

from __future__ import annotations

from typing import Any

import streamlit as st

from rldk.core.text import clean
from rldk.dashboard.page.plots import SPAN
from rldk.dashboard.page.words import ago, since_bytes

__all__ = ["choose_axis", "choose_runs", "remarks"]

_MOST_COMPARED = 5
_RUN = "rldk_run"
_COMPARED = "rldk_compared"


def choose_runs(files: dict[str, tuple[str, int, float]]) -> tuple[str | None, list[str]]:
    """The key of the run to show, none where there is no run, and the keys of those to compare it with."""
    if not files:
        return None, []
    keys, labels = list(files), _labels(files)
    chosen = st.session_state.get(_RUN) or st.query_params.get("run")
    key = chosen if chosen in files else keys[0]
    own = f"rldk_pick_{hash(tuple(keys))}"  # Streamlit forgets the choice of a picker whose options change: ours is kept apart

    def picked() -> None:
        st.session_state[_RUN] = st.session_state[own]
        st.session_state[SPAN] = None

    title = f"Run ({len(files)})"
    st.selectbox(title, keys, keys.index(key), format_func=labels.__getitem__, key=own, on_change=picked)
    st.session_state[_RUN] = st.query_params["run"] = key
    st.caption(f"{since_bytes(files[key][1])}, changed {ago(files[key][2])}")
    return key, _choose_compared([other for other in keys if other != key], labels)


def _choose_compared(others: list[str], labels: dict[str, str]) -> list[str]:
    compared = [other for other in st.session_state.get(_COMPARED, ()) if other in others][:_MOST_COMPARED]
    own = f"rldk_more_{hash(tuple(others))}"

    def picked() -> None:
        st.session_state[_COMPARED] = list(st.session_state[own])

    st.multiselect(
        "Compare with", others, compared, format_func=labels.__getitem__, key=own, on_change=picked,
        max_selections=_MOST_COMPARED, placeholder="none", disabled=not others,
    )  # fmt: skip
    return compared


def _labels(files: dict[str, tuple[str, int, float]]) -> dict[str, str]:
    """What the picker calls the runs. Streamlit knows an option by its label: each must be one of its own, and stay."""
    taken: set[str] = set()
    labels = {}
    for key in sorted(files):
        label, number = clean(files[key][0], 80), 2
        while label in taken:
            label, number = f"{clean(key, 80)} ({number})", number + 1
        labels[key] = label
        taken.add(label)
    return labels


def choose_axis() -> str:
    """What the curves lie along; a range of the one is none of the other."""

    def picked() -> None:
        st.session_state[SPAN] = None

    names = {"step": "Steps", "hours": "Hours"}
    chosen = st.segmented_control(
        "Along", list(names), default="step", required=True, format_func=names.__getitem__, key="rldk_axis", on_change=picked,
        width="stretch",
    )  # fmt: skip
    return str(chosen or "step")


def remarks(listing: dict[str, Any]) -> list[str]:
    """What of the folder is not in the list."""
    said = []
    if listing["left_out"]:
        said.append(f"{listing['left_out']} more files are not listed.")
    if listing["led_out"]:
        said.append(f"{listing['led_out']} links that lead out of the folder are not followed.")
    return said
