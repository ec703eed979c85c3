"""The first answer of the server: the table of runs as plain HTML, or the picture of the run that the address names."""

from __future__ import annotations

import time
from collections.abc import Sequence
from urllib.parse import quote

from rldk.dashboard.client import Client
from rldk.dashboard.page.html import first_frame, piece
from rldk.dashboard.page.run_rows import RunRows, rows_of, short_names
from rldk.dashboard.page.summary import first_picture

__all__ = ["first_answer"]

_MAX_ROWS = 30
_WIDTH, _HEIGHT = 110, 22


def first_answer(client: Client, bench: Client, parts: Sequence[str], wanted: str | None) -> str:
    """What is painted before any script has loaded; empty if there is nothing to show.

    `parts` are the scripts of the interactive table, which the browser may fetch while it starts.
    """
    if wanted is None:
        found = rows_of(bench)
        if len(found.rows) > 1:
            return "".join(f'<link rel="modulepreload" href="./{quote(part)}">' for part in parts) + _first_table(found)
    return first_picture(client, wanted)


def _first_table(found: RunRows) -> str:
    rows, _ = found.chosen("", (), "newest")
    names, now = short_names(rows), time.time()
    shown = [
        {**row, "name": name, "age": max(0.0, now - row["changed"]), "points": _points(row["reward_curve"])}
        for row, name in zip(rows[:_MAX_ROWS], names, strict=False)
    ]
    live = sum(row["status"] == "live" for row in rows)
    return first_frame(piece("runs_table", shown, len(rows), live), "runs")


def _points(curve: Sequence[float | None] | None) -> str:
    """The points of a small line, as SVG takes them; empty for fewer than two."""
    values = [value for value in curve or () if value is not None]
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    scale = (_HEIGHT - 2) / (high - low) if high > low else 0.0
    step = _WIDTH / (len(values) - 1)
    return " ".join(f"{step * place:.1f},{_HEIGHT - 1 - scale * (value - low):.1f}" for place, value in enumerate(values))
