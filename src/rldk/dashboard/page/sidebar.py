"""The sidebar: which run is shown, which ones it is compared with, and along which axis."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st
from markupsafe import Markup

from rldk.core.text import ago, clean, counted
from rldk.dashboard.client import ReaderEnded, notifier_of
from rldk.dashboard.page.html import show
from rldk.dashboard.page.plots import SPAN
from rldk.present.html import text

__all__ = ["choose_axis", "choose_refresh", "choose_runs", "draw_title", "file_size", "notification_remarks", "remarks"]

_MAX_COMPARED = 5
_MAX_SKIPPED = 5
_RUN = "rldk_run"
_COMPARED = "rldk_compared"


def draw_title(folder: str) -> None:
    """The name of the folder at the top."""
    show(Markup('<h1>rldk</h1><p class="soft">{}</p>').format(text(Path(folder).name or folder, 80)))


def choose_refresh(seconds: float, remarks: Sequence[str]) -> bool:
    """Whether the page is updated by itself, which it can be every so many seconds (0: never); and what there is to say."""
    label, about = "Live updates", "Update the page while runs are written"
    follow = seconds > 0 and st.toggle(label, value=True, key="rldk_follow", help=about)
    st.button("Refresh", key="rldk_refresh", width="stretch")
    for remark in remarks:
        st.caption(remark)
    return follow


def choose_runs(files: dict[str, tuple[str, int, float]]) -> tuple[str | None, list[str]]:
    """The key of the log to show, `None` if there is none, and the keys of those to compare it with."""
    if not files:
        return None, []
    keys, labels = list(files), _labels(files)
    chosen = st.session_state.get(_RUN)
    key = chosen if chosen in files else keys[0]
    own = f"rldk_pick_{hash(tuple(keys))}"  # Streamlit forgets the choice of a widget whose options change

    def picked() -> None:
        st.session_state[_RUN] = st.session_state[own]
        st.session_state[SPAN] = st.session_state["rldk_part"] = None

    title = f"Run ({len(files)})"
    st.selectbox(title, keys, keys.index(key), format_func=labels.__getitem__, key=own, on_change=picked)
    st.session_state[_RUN] = key
    st.caption(f"{file_size(files[key][1])}, changed {ago(files[key][2])}")
    return key, _choose_compared([other for other in keys if other != key], labels)


def _choose_compared(others: list[str], labels: dict[str, str]) -> list[str]:
    compared = [other for other in st.session_state.get(_COMPARED, ()) if other in others][:_MAX_COMPARED]
    own = f"rldk_more_{hash(tuple(others))}"

    def picked() -> None:
        st.session_state[_COMPARED] = list(st.session_state[own])

    st.multiselect(
        "Compare with", others, compared, format_func=labels.__getitem__, key=own, on_change=picked,
        max_selections=_MAX_COMPARED, placeholder="none", disabled=not others,
    )  # fmt: skip
    return compared


def _labels(files: dict[str, tuple[str, int, float]]) -> dict[str, str]:
    """The labels of the runs. Streamlit identifies an option by its label, so they must be unique and must not change."""
    taken: set[str] = set()
    labels = {}
    for key in sorted(files):
        label, number = clean(files[key][0], 80), 2
        while label in taken:
            label, number = f"{clean(key, 80)} ({number})", number + 1
        labels[key] = label
        taken.add(label)
    return labels


def choose_axis(with_time: bool = False) -> str:
    """The axis along which curves are drawn; a range on one axis means nothing on the other."""

    def picked() -> None:
        st.session_state[SPAN] = None

    names = {"step": "Steps", "hours": "Hours", **({"time": "Time"} if with_time else {})}
    if st.session_state.get("rldk_axis") not in names:
        st.session_state["rldk_axis"] = "step"
    chosen = st.segmented_control(
        "X axis", list(names), required=True, format_func=names.__getitem__, key="rldk_axis", on_change=picked, width="stretch"
    )
    return str(chosen or "step")


def remarks(listing: dict[str, Any]) -> list[str]:
    """What is not in the list or the table of runs."""
    found = []
    if listing.get("not_listed"):
        found.append(f"{counted(listing['not_listed'], 'more file')} not listed yet.")
    if listing.get("outside"):
        found.append(f"{counted(listing['outside'], 'link')} to outside this folder ignored.")
    return found + _skipped_remark(listing.get("skipped"))


def _skipped_remark(skipped: Sequence[tuple[str, str]] | None) -> list[str]:
    """What cannot be opened as a log, such as a pipe, and why."""
    if not skipped:
        return []
    first = "; ".join(_plain(f"{name} {why.rstrip('.')}") for name, why in skipped[:_MAX_SKIPPED])
    more = f"; and {len(skipped) - _MAX_SKIPPED} more" if len(skipped) > _MAX_SKIPPED else ""
    return [f"{len(skipped)} skipped: {first}{more}."]


def notification_remarks(folder: str) -> list[str]:
    """Where incidents are reported to, and what has failed; nothing where no notifications are wanted."""
    client = notifier_of(folder)
    if client is None:
        return []
    try:
        told = client.ask("status")
    except ReaderEnded:
        return ["The process that sends notifications has ended and is being restarted."]
    said = [clean(line, 300) for line in told["said"]]
    return [f"Notifications: {', '.join(told['to']) or 'none left'}; {counted(told['followed'], 'live log')} followed.", *said]


def _plain(text: str) -> str:
    """Text of a file's name that Markdown must not read as its own."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", text)


def file_size(size: int) -> str:
    """Bytes in few characters."""
    amount = float(size)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"
