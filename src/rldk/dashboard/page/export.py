"""What the page shows, to take away: rows as CSV, all that is known as JSON, pictures as PNG."""

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
from rldk.core.files import file_name
from rldk.dashboard.page.context import Look
from rldk.dashboard.page.curves import marks_of, nothing_to_draw, panels_for, smoothed
from rldk.dashboard.page.words import number
from rldk.dashboard.wire import numbers
from rldk.present.plots.svg import png

__all__ = ["as_csv", "as_json", "as_pictures", "draw_export"]

_ABOUT = (
    "run_id", "verdict", "state", "reason", "scores", "worst_scores", "coverage", "incidents", "anomalies", "machine", "rows",
    "judged", "first_step", "last_step",
)  # fmt: skip


def draw_export(look: Look) -> None:
    """One button a format; what is asked for is made when it is asked for."""
    span = look.span
    told = "the whole run" if span is None else f"{look.words_of_axis.lower()} {number(span[0])} to {number(span[1])}"
    st.write(f"What is in view: {told}.")
    name = file_name(look.label)
    left, middle, right = st.columns(3)
    with left:
        _offer("Rows as CSV", f"{name}.csv", "text/csv", "csv", lambda: as_csv(look))
    with middle:
        _offer("Everything as JSON", f"{name}.json", "application/json", "json", lambda: as_json(look))
    with right:
        _offer("Pictures as PNG", f"{name}-png.zip", "application/zip", "png", lambda: as_pictures(look))
    st.caption(
        "The camera above each plot saves that plot alone. At most 200 000 rows are written here; `rldk ingest` has no such "
        "limit, and `rldk report` makes a page to send."
    )


def _offer(label: str, name: str, kind: str, key: str, make: Callable[[], bytes]) -> None:
    """A button that makes the file, and then one that gives it."""
    kept = f"rldk_made_{key}"
    if st.button(label, key=f"rldk_make_{key}", width="stretch"):
        try:
            with st.spinner("Making it"):
                st.session_state[kept] = (name, make())
        except MissingDependencyError as error:
            st.session_state.pop(kept, None)
            nothing_to_draw(str(error))
    made = st.session_state.get(kept)
    if made is not None and made[0] == name:
        st.download_button(f"Save {name}", made[1], name, kind, key=f"rldk_give_{key}", on_click="ignore", width="stretch")


def _rows(look: Look) -> dict[str, Any]:
    span = None if look.span is None else list(look.span)
    return look.client.ask("rows", key=look.key, run=look.state.get("key_of_run"), span=span, axis=look.axis)


def as_csv(look: Look) -> bytes:
    """The rows in view, one a line; a metric that was not logged is an empty cell."""
    columns = {name: numbers(values).tolist() for name, values in _rows(look)["columns"].items()}
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["run_id", *columns])
    for row in zip(*columns.values(), strict=True):
        writer.writerow([look.label, *(_cell(value) for value in row)])
    return text.getvalue().encode()


def _cell(value: float) -> str | int | float:
    if math.isnan(value):
        return ""
    return int(value) if value == value // 1 and abs(value) < 2**53 else value


def as_json(look: Look) -> bytes:
    """Verdict, scores, incidents, anomalies, and the rows in view as columns; a number that is not finite is `null`."""
    found = _rows(look)
    columns = {name: [_plain(value) for value in numbers(values).tolist()] for name, values in found["columns"].items()}
    told = {name: look.state.get(name) for name in _ABOUT}
    return json.dumps(_strict({**told, "rows_written": found["rows"], "columns": columns})).encode()


def _plain(value: float) -> float | int | None:
    return None if not math.isfinite(value) else int(value) if value == value // 1 and abs(value) < 2**53 else value


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _strict(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_strict(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_pictures(look: Look) -> bytes:
    """Every panel in view as a PNG file, in one archive."""
    marks = marks_of(look.state.get("incidents") or [])
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for place, panel in enumerate(panels_for(look.runs(), span=look.span, marks=marks, others=True), 1):
            archive.writestr(f"{place:02}-{file_name(panel.key)}.png", png(smoothed(panel, look.smoothing), dark=look.dark))
    return made.getvalue()


