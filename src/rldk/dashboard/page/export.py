"""Export: rows as CSV, everything as JSON, panels as PNG."""

from __future__ import annotations

import csv
import io
import json
import math
import zipfile
from collections.abc import Callable
from typing import Any

import streamlit as st

from rldk.core.errors import MissingDependencyError
from rldk.core.files import file_name, strict
from rldk.core.text import csv_cell, short_number
from rldk.dashboard.page.html import note
from rldk.dashboard.page.panels import RunView, panels_for, smoothed
from rldk.dashboard.processes import numbers
from rldk.present.plots.svg import png

__all__ = ["as_csv", "as_json", "as_pictures", "draw_export"]

_ABOUT = (
    "run_id", "verdict", "state", "reason", "scores", "worst_scores", "coverage", "incidents", "anomalies", "machine", "rows",
    "judged", "first_step", "last_step",
)  # fmt: skip


def draw_export(view: RunView) -> None:
    """One button per format; a file is made when its button is pressed."""
    span = view.span
    part = "the whole run" if span is None else f"{view.range_name.lower()} {short_number(span[0])} to {short_number(span[1])}"
    st.write(f"The files contain what is shown: {part}.")
    name = file_name(view.label)
    left, middle, right = st.columns(3)
    with left:
        _offer("Rows as CSV", f"{name}.csv", "text/csv", "csv", lambda: as_csv(view))
    with middle:
        _offer("Everything as JSON", f"{name}.json", "application/json", "json", lambda: as_json(view))
    with right:
        _offer("Plots as PNG", f"{name}-png.zip", "application/zip", "png", lambda: as_pictures(view))
    st.caption(
        "The camera above a plot saves that plot alone. A file has at most 200,000 rows; `rldk ingest` has no such limit, and "
        "`rldk report` writes a page that can be sent to others."
    )


def _offer(label: str, name: str, kind: str, key: str, make: Callable[[], bytes]) -> None:
    """A button that makes the file, and then one that downloads it."""
    kept = f"rldk_made_{key}"
    if st.button(label, key=f"rldk_make_{key}", width="stretch"):
        try:
            with st.spinner("Writing the file"):
                st.session_state[kept] = (name, make())
        except MissingDependencyError as error:
            st.session_state.pop(kept, None)
            note(str(error))
    made = st.session_state.get(kept)
    if made is not None and made[0] == name:
        st.download_button(f"Download {name}", made[1], name, kind, key=f"rldk_give_{key}", on_click="ignore", width="stretch")


def _rows(view: RunView) -> dict[str, Any]:
    span = None if view.span is None else list(view.span)
    return view.ask("rows", span=span, axis=view.axis)


def as_csv(view: RunView) -> bytes:
    """The rows that are shown, one per line; a metric that was not logged is an empty cell."""
    columns = {name: numbers(values).tolist() for name, values in _rows(view)["columns"].items()}
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["run_id", *map(csv_cell, columns)])
    for row in zip(*columns.values(), strict=True):
        writer.writerow([csv_cell(view.label), *("" if math.isnan(value) else _plain(value) for value in row)])
    return text.getvalue().encode("utf-8", "replace")


def as_json(view: RunView) -> bytes:
    """Verdict, scores, incidents, anomalies, and the rows that are shown as columns; a number that is not finite is `null`."""
    found = _rows(view)
    columns = {name: [_plain(value) for value in numbers(values).tolist()] for name, values in found["columns"].items()}
    about = {name: view.state.get(name) for name in _ABOUT}
    return json.dumps(strict({**about, "rows_written": found["rows"], "columns": columns})).encode()


def _plain(value: float) -> float | int:
    """A whole number without its `.0`."""
    return int(value) if value == value // 1 and abs(value) < 2**53 else value


def as_pictures(view: RunView) -> bytes:
    """Every panel as a PNG file, in one archive."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for place, panel in enumerate(panels_for(view, others=True), 1):
            archive.writestr(f"{place:02}-{file_name(panel.key)}.png", png(smoothed(panel, view.smoothing), dark=view.dark))
    return made.getvalue()
