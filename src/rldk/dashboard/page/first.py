"""The first picture of a run: plain HTML that goes out with the page, and stays until the page's own plots are drawn.

A browser needs seconds for the scripts that draw those. This needs none.
"""

from __future__ import annotations

from rldk.dashboard.client import Client
from rldk.dashboard.page.context import Look
from rldk.dashboard.page.curves import overview_panels
from rldk.dashboard.page.header import head, score_tiles
from rldk.dashboard.page.story import worst_incident
from rldk.dashboard.page.style import RULES
from rldk.present.palette import DARK, LIGHT
from rldk.present.plots.svg import svg

__all__ = ["first_sight"]

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


def first_sight(client: Client, wanted: str | None) -> str:
    """Name, verdict and main curves of a run, the one wanted or the latest; empty where there is nothing to show."""
    files = [file[0] for file in client.ask("list")["files"]]
    if not files:
        return ""
    key = wanted if wanted is not None and wanted in files else files[0]
    state = client.ask("state", key=key)
    if not state.get("rows") and not state.get("sketched"):
        return ""
    look = Look(client, key, state.get("key_of_run"), state)
    panels = overview_panels(look)
    if not panels:
        return ""
    drawn = "".join(svg(panel, _WIDTH, _HEIGHT) for panel in panels)
    told = worst_incident(state.get("incidents") or [])
    inside = f'{head(look)}{score_tiles(look)}{told}<div class="panels">{drawn}</div>'
    return f'<style>{_style()}</style><div id="rldk-first" data-rldk="first"><div class="rldk">{inside}</div></div>'


def _style() -> str:
    """The style sheet. The picture gives way once the plots are drawn, or where the page has something else to show."""
    told = "[data-rldk=drawn], [data-rldk=say], [data-rldk=empty], [data-testid=stException]"
    gone = f"{told}, [data-rldk=header]:not([data-view=Overview])"
    dark = f"@media (prefers-color-scheme: dark) {{ #rldk-first {{ {DARK.variables()} }} html {{ background: {DARK.paper}; }} }}"
    return f"#rldk-first {{ {LIGHT.variables()} }} {dark} {RULES} {_PLACE} body:has({gone}) #rldk-first {{ display: none; }}"
