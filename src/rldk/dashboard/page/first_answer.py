"""The first answer of the server: the table of runs, or the run that the address names with its main curves, as plain HTML.

It stays until the page's own plots are drawn. A browser needs seconds to load the scripts that draw those; this needs none.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from urllib.parse import quote

from markupsafe import Markup

from rldk.dashboard.client import Client
from rldk.dashboard.page.announcements import banner
from rldk.dashboard.page.html import piece, rules
from rldk.dashboard.page.panels import RunView, overview_panels
from rldk.dashboard.page.run_rows import RunRows, rows_of, short_names
from rldk.dashboard.page.summary import head, scores, worst_incident_card
from rldk.present.html import asset
from rldk.present.palette import DARK, LIGHT
from rldk.present.plots.svg import svg

__all__ = ["first_answer"]

_MAX_ROWS = 30
_LINE_WIDTH, _LINE_HEIGHT = 110, 22
_PANEL_WIDTH, _PANEL_HEIGHT = 434, 290


def first_answer(client: Client, bench: Client, parts: Sequence[str], wanted: str | None) -> str:
    """What is painted before any script has loaded; empty if there is nothing to show.

    `parts` are the scripts of the interactive table, which the browser may fetch while it starts.
    """
    if wanted is None:
        found = rows_of(bench)
        if len(found.rows) > 1:
            return "".join(f'<link rel="modulepreload" href="./{quote(part)}">' for part in parts) + _first_table(found)
    return _first_picture(client, wanted)


def _first_table(found: RunRows) -> str:
    rows, _ = found.chosen("", (), "newest")
    names, now = short_names(rows), time.time()
    shown = [
        {**row, "name": name, "age": max(0.0, now - row["changed"]), "points": _points(row["reward_curve"])}
        for row, name in zip(rows[:_MAX_ROWS], names, strict=False)
    ]
    live = sum(row["status"] == "live" for row in rows)
    return _frame(piece("runs_table", shown, len(rows), live), "runs")


def _points(curve: Sequence[float | None] | None) -> str:
    """The points of a small line, as SVG takes them; empty for fewer than two."""
    values = [value for value in curve or () if value is not None]
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    scale = (_LINE_HEIGHT - 2) / (high - low) if high > low else 0.0
    step = _LINE_WIDTH / (len(values) - 1)
    return " ".join(f"{step * place:.1f},{_LINE_HEIGHT - 1 - scale * (value - low):.1f}" for place, value in enumerate(values))


def _first_picture(client: Client, wanted: str | None) -> str:
    """Name, verdict and main curves of a run, the wanted one or the newest; empty if there is nothing to show."""
    files = [file[0] for file in client.ask("list")["files"]]
    if not files:
        return ""
    key = wanted if wanted is not None and wanted in files else files[0]
    state = client.ask("state", key=key)
    if not state.get("rows") and not state.get("sketched"):
        return ""
    view = RunView(client, key, state)
    panels = overview_panels(view)
    if not panels:
        return ""
    drawn = "".join(svg(panel, _PANEL_WIDTH, _PANEL_HEIGHT) for panel in panels)
    top = Markup("").join((*banner(view), head(view), scores(view), worst_incident_card(view)))
    return _frame(f'{top}<div class="panels">{drawn}</div>')


def _frame(inside: str, kind: str = "") -> str:
    """HTML that is painted before any script has loaded, with its style sheet, in the colours that the browser prefers."""
    dark = f"@media (prefers-color-scheme: dark) {{ #rldk-first {{ {DARK.variables()} }} html {{ background: {DARK.paper}; }} }}"
    sheet = f"#rldk-first {{ {LIGHT.variables()} }} {dark} {rules()} {asset('rldk.dashboard.page', 'first_picture.css')}"
    named = f' class="{kind}"' if kind else ""
    return f'<style>{sheet}</style><div id="rldk-first"{named} data-rldk="first"><div class="rldk">{inside}</div></div>'
