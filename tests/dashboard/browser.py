"""A real Chromium for the tests: what it said, what it asked for, and what its plots show."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest

__all__ = ["ARGUMENTS", "Visit", "chromium"]

ARGUMENTS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
PATIENCE = 60_000  # the machine may be busy; what is slow is for the benchmark to say

_PLOTS = """() => [...document.querySelectorAll('.js-plotly-plot')].filter(plot => plot._fullLayout).map(plot => ({
  key: (plot._fullLayout.meta || {}).key, range: plot._fullLayout.xaxis.range.map(Number),
  points: Math.max(0, ...plot._fullData.map(trace => trace.x.length)), number: plot.testNumber,
  last: Math.max(...plot._fullData.flatMap(trace => [...trace.x])),
  revision: plot._fullLayout.uirevision,
}))"""


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; the test is skipped where there is none."""
    pytest.importorskip("streamlit")
    playwright = pytest.importorskip("playwright.sync_api")
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("Debian's chromium is not installed (make chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=ARGUMENTS)
        browser.new_context(accept_downloads=True)
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """One look at the dashboard: a page, its complaints, and the addresses it asked.

    Visits one after another are made in the same tab, which keeps the compiled scripts: they are most of the work. A visit with
    options of a context has a tab and a cache of its own.
    """

    busy: ClassVar[set[Any]] = set()

    def __init__(self, browser: Any, url: str, height: int = 900, **context: Any) -> None:
        self.url = url
        self.context = browser.new_context(**context) if context else browser.contexts[0]
        free = [page for page in self.context.pages if page not in self.busy]
        self.page = free[0] if free else self.context.new_page()
        self.busy.add(self.page)
        self.page.set_default_timeout(PATIENCE)
        if "viewport" not in context:
            self.page.set_viewport_size({"width": 1280, "height": height})
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.heard = {
            "console": lambda message: self.complaints.append(message.text) if message.type == "error" else None,
            "pageerror": lambda error: self.complaints.append(str(error)),
            "dialog": lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()),
            "request": lambda request: self.asked.append(request.url),
        }
        for name, take in self.heard.items():
            self.page.on(name, take)

    def go(self, query: str = "", wait: str = ".js-plotly-plot .main-svg") -> Visit:
        """Open the page, and wait for something on it; by default for a plot of its own."""
        self.page.goto(f"{self.url}/{query}", wait_until="commit")
        if wait:
            self.page.wait_for_selector(wait)
        return self

    def view(self, name: str, shown: str = "") -> None:
        """Choose a view, and wait for something on it; a click that falls into a redraw is made again."""
        from playwright.sync_api import TimeoutError as Late

        button = self.page.get_by_role("radio", name=name, exact=True).first
        for attempt in range(6):
            button.click()
            if not shown:
                return
            try:
                self.page.wait_for_selector(shown, state="attached", timeout=PATIENCE / 6)
                return
            except Late:
                if attempt == 5:
                    raise

    def plots(self) -> list[dict[str, Any]]:
        """What the plots show."""
        found: list[dict[str, Any]] = self.page.evaluate(_PLOTS)
        return found

    def until(self, expression: str, timeout: int = PATIENCE) -> None:
        """Wait until an expression is true in the page."""
        self.page.wait_for_function(expression, timeout=timeout)

    def text(self, selector: str = "body") -> str:
        return str(self.page.inner_text(selector))

    def check(self) -> None:
        """Nothing complained, and nobody else was asked for anything."""
        assert self.complaints == []
        assert [url for url in self.asked if not url.startswith((self.url, "data:", "blob:"))] == []
        assert self.page.locator("[data-testid=stException]").count() == 0
        assert "Traceback" not in self.text()

    def close(self) -> None:
        """Leave the tab to the next visit."""
        self.busy.remove(self.page)
        for name, take in self.heard.items():
            self.page.remove_listener(name, take)
        self.page.goto("about:blank")
        if self.context is not self.context.browser.contexts[0]:
            self.context.close()
