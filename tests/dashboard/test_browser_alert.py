"""A live alert in a real browser: a banner that stays, the tab, and the browser's own notification, once."""

from __future__ import annotations

import base64
import time
from pathlib import Path

import pytest

from rldk.dashboard import Dashboard
from rldk.present.palette import LIGHT

from .browser import Visit, chromium
from .conftest import write
from .test_page_alerts import ATTACK, broken_reward

pytestmark = pytest.mark.full

RECORDED = """() => {
  window.notified = [];
  const Real = window.Notification;
  window.Notification = class extends Real {
    constructor(title, options) { super(title, options); window.notified.push({ title, ...options }); }
  };
}"""
BANNER = "[data-rldk=banner] .banner"


def icon(visit: Visit) -> str:
    """The icon of the tab, as the SVG that it is."""
    given = str(visit.page.evaluate("() => document.querySelector('link[rel~=icon]').href"))
    return base64.b64decode(given.partition(",")[2]).decode() if given.startswith("data:") else given


def test_a_live_alert_cannot_be_missed(tmp_path: Path) -> None:
    events = broken_reward(run_id=f"mine {ATTACK}", now=time.time())
    log = write(tmp_path / "mine_events.jsonl", events[:99])
    with chromium() as browser, Dashboard(tmp_path, port=0, refresh_seconds=0.3) as dashboard:
        visit = Visit(browser, dashboard.url, permissions=["notifications"])
        visit.page.add_init_script(f"({RECORDED})()")
        visit.go("?run=mine_events.jsonl")
        visit.until("() => document.title.startsWith('mine ') && document.title.endsWith('· rldk')")
        assert LIGHT.good in icon(visit) and visit.page.locator(BANNER).count() == 0
        visit.page.get_by_role("button", name="Notify me in this browser").click()
        visit.page.get_by_text("This browser notifies you of critical incidents").wait_for()

        write(log, events[99:125])
        visit.page.wait_for_selector(f"{BANNER}.critical")
        headline = visit.text(BANNER)
        assert "since step 101" in headline and "ago" in headline and "What to do" in visit.text("[data-rldk=banner-details]")
        visit.until("() => document.title.startsWith('Critical: mine ')")
        assert LIGHT.critical in icon(visit)
        visit.until("() => window.notified.length === 1")
        _stays_in_sight(visit)
        visit.view("Export")
        visit.page.get_by_text("The files contain what is shown").wait_for()
        assert visit.page.locator(f"{BANNER}.critical").is_visible()
        told = visit.page.evaluate("() => window.notified")
        assert len(told) == 1 and told[0]["title"].startswith("mine ") and "Critical since step 101" in told[0]["body"]

        visit.page.reload()
        visit.page.wait_for_selector(f"{BANNER}.critical")
        visit.page.get_by_role("button", name="Turn off").wait_for()
        write(log, events[125:])
        visit.page.wait_for_selector(f"{BANNER}.recovered")
        assert "recovered at step 1" in visit.text(BANNER).lower()
        visit.until("() => document.title.startsWith('Recovered: mine ')")
        assert visit.page.evaluate("() => window.notified") == []  # it was told before
        assert visit.page.evaluate("() => window.pwned === undefined")
        visit.check()
        visit.close()


def _stays_in_sight(visit: Visit) -> None:
    visit.view("Curves", "[data-rldk=drawn] [data-panel=losses]")
    scrolled = "const main = document.querySelector('[data-testid=stMain]'); main.scrollTo(0, 400); return main.scrollTop > 100;"
    visit.until(f"() => {{ {scrolled} }}")
    box = visit.page.locator(f"{BANNER}.critical").bounding_box()
    assert box is not None and 0 <= box["y"] < 200
