"""The first picture of a run: plain HTML in the first answer, which stays until the page's own plots are drawn.

A browser needs seconds to load the scripts that draw those; this needs none.
"""

from __future__ import annotations

from rldk.dashboard.client import Client
from rldk.dashboard.page.alerts import worst_incident_card
from rldk.dashboard.page.header import head, score_tiles
from rldk.dashboard.page.html import RULES
from rldk.dashboard.page.panels import RunView, overview_panels
from rldk.present.palette import DARK, LIGHT
from rldk.present.plots.svg import svg

__all__ = ["first_picture"]

_WIDTH, _HEIGHT = 434, 290
_PLACE = """
#rldk-first { position: fixed; inset: 6.75rem 0 0 300px; z-index: 10; overflow-y: auto; background: var(--rldk-paper);
  font-family: "Source Sans", system-ui, sans-serif; animation: rldk-gone 0s 30s forwards; }
#rldk-first > div { box-sizing: border-box; max-width: 1500px; margin: 0 auto; padding: 0 5rem 3rem; }
#rldk-first .panels { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem 2rem; margin-top: 1.5rem; }
#rldk-first svg { display: block; width: 100%; height: auto; }
#rldk-first .tiles { margin-top: 1.6rem; } #rldk-first .card { margin-top: 1.5rem; }
@keyframes rldk-gone { to { visibility: hidden; } }
@media (max-width: 900px) { #rldk-first > div { padding: 0 1rem 1rem; } #rldk-first .panels { grid-template-columns: 1fr; } }
@media (max-width: 768px) { #rldk-first { left: 0; top: 9rem; } }
@media (max-width: 640px) { #rldk-first > div { padding: 0 0.8rem 1rem; } }
"""


def first_picture(client: Client, wanted: str | None) -> str:
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
    drawn = "".join(svg(panel, _WIDTH, _HEIGHT) for panel in panels)
    inside = f'{head(view)}{score_tiles(view)}{worst_incident_card(view)}<div class="panels">{drawn}</div>'
    return f'<style>{_style()}</style><div id="rldk-first" data-rldk="first"><div class="rldk">{inside}</div></div>'


def _style() -> str:
    """The style sheet. The picture is hidden once the plots are drawn, or when the page shows something else."""
    shown = "[data-rldk=drawn], [data-rldk=message], [data-rldk=empty], [data-testid=stException]"
    hidden = f"{shown}, [data-rldk=header]:not([data-view=Overview])"
    dark = f"@media (prefers-color-scheme: dark) {{ #rldk-first {{ {DARK.variables()} }} html {{ background: {DARK.paper}; }} }}"
    return f"#rldk-first {{ {LIGHT.variables()} }} {dark} {RULES} {_PLACE} body:has({hidden}) #rldk-first {{ display: none; }}"
