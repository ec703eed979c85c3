"""The page of all runs in a real browser: what a person clicks, and an address that opens the same view again."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from rldk.core.event import Event
from rldk.dashboard import Dashboard
from rldk.testing.streams import healthy

from .browser import Visit, chromium
from .conftest import write

pytestmark = pytest.mark.full

ATTACK = "<img src=x onerror='window.pwned=1'><script>window.pwned=2</script>\x1b[31m $\\a(1)$ [x](javascript:alert(2)) :red[y]"
TABLE = "[data-testid=stDataFrame] canvas"
ROW = 35
ALL_ROWS = -1
ALL_DRAWN = "() => document.querySelectorAll('[data-rldk=drawn] .js-plotly-plot .main-svg').length >= 4"
JUDGED = "() => !/being judged/.test(document.body.innerText) && /4 runs/.test(document.body.innerText)"
LINES = "() => document.querySelector('.js-plotly-plot')._fullData.map(one => [one.legendgroup, one.visible])"


@pytest.fixture(scope="module")
def dashboard(tmp_path_factory: pytest.TempPathFactory, sick_events: list[Event]) -> Iterator[tuple[Any, Dashboard]]:
    folder = tmp_path_factory.mktemp("runs")
    for number, (name, events) in enumerate({
        "sick": sick_events, "calm-1": healthy("ppo", 150, 1), "calm-2": healthy("ppo", 150, 2), ATTACK: healthy("ppo", 60, 3),
    }.items()):  # fmt: skip
        made = [replace(event, model_info={**event.model_info, "run_id": name}) for event in events]
        made[0].model_info["config"] = {"learning_rate": 1e-6, "seed": number, "name": name}
        write(folder / f"{number}_events.jsonl", made)
    with chromium() as browser, Dashboard(folder, port=0) as running:
        yield browser, running


@pytest.fixture
def visit(dashboard: tuple[Any, Dashboard]) -> Iterator[Visit]:
    browser, running = dashboard
    made = Visit(browser, running.url)
    yield made
    made.check()
    assert made.page.evaluate("() => window.pwned === undefined")
    made.close()


def select(visit: Visit, *places: int) -> None:
    """Click the boxes of rows, counted from 0; `ALL_ROWS` is the box above them."""
    box = visit.page.locator(TABLE).first.bounding_box()
    assert box is not None
    for place in places:
        visit.page.mouse.click(box["x"] + 18, box["y"] + ROW * (place + 1) + ROW / 2)
        visit.page.wait_for_timeout(400)


def test_runs_are_selected_drawn_hidden_and_shared(visit: Visit, dashboard: tuple[Any, Dashboard]) -> None:
    visit.go("?order=name", TABLE)
    visit.page.wait_for_function(JUDGED)
    select(visit, 2, ALL_ROWS)
    visit.until(ALL_DRAWN)
    visit.until("() => document.querySelectorAll('.rldk-legend button').length === 4")
    assert visit.page.locator("img[src=x]").count() == 0 and "<script>window.pwned=2" in visit.text(".rldk-legend")
    visit.page.locator(".rldk-legend button", has_text="calm-1").click()
    visit.until(f"() => Object.fromEntries(({LINES})())['calm-1'] === 'legendonly'")
    visit.until(f"() => Object.fromEntries(({LINES})())['sick'] === true")
    visit.page.locator(".js-plotly-plot .nsewdrag").first.hover()
    visit.until("() => [...document.querySelectorAll('.rldk-cross')].filter(one => !one.hidden).length >= 2")
    visit.page.get_by_text("Y: log").click()
    visit.until("() => document.querySelector('.js-plotly-plot')._fullLayout.yaxis.type === 'log'")
    visit.until("() => location.search.includes('y=log')")  # the address comes after the plots
    address = visit.page.url
    assert {"order", "runs", "y"} == urllib.parse.parse_qs(urllib.parse.urlsplit(address).query).keys()
    from playwright.sync_api import TimeoutError as Late

    for attempt in range(3):  # on a machine that is very busy, a page opens with the default scale now and then
        visit.page.goto("about:blank")
        visit.go(address.removeprefix(f"{dashboard[1].url}/"), ".rldk-legend button")
        visit.until(ALL_DRAWN)
        visit.until("() => document.querySelectorAll('.rldk-legend button').length === 4")
        try:
            visit.until("() => document.querySelector('.js-plotly-plot')._fullLayout.yaxis.type === 'log'", timeout=20_000)
            break
        except Late:
            if attempt == 2:
                raise
    visit.view("Compare", "[data-rldk=comparison]")
    assert "Where each ended" in visit.text("[data-rldk=comparison]")


def test_a_name_opens_its_run_and_back_returns_to_the_table(visit: Visit) -> None:
    visit.go("?q=%5Esick&order=name", TABLE)
    visit.page.get_by_text("1 of 4 runs").wait_for()
    box = visit.page.locator(TABLE).first.bounding_box()
    assert box is not None
    visit.page.mouse.click(box["x"] + 100, box["y"] + 1.5 * ROW)
    visit.page.wait_for_selector("[data-rldk=header]")
    assert "sick" in visit.text("[data-rldk=header]") and "run=0_events.jsonl" in visit.page.url
    visit.page.wait_for_timeout(3500)  # sooner, it might be a click that came before the new address
    visit.page.go_back()
    visit.page.wait_for_selector(TABLE)
    visit.page.get_by_text("1 of 4 runs").wait_for()


def test_the_table_is_seen_before_any_script_and_on_a_phone(dashboard: tuple[Any, Dashboard]) -> None:
    browser, running = dashboard
    plain = Visit(browser, running.url, java_script_enabled=False).go("", "[data-rldk=first] table")
    assert "sick" in plain.text("[data-rldk=first]") and plain.page.locator("[data-rldk=first] polyline").count() >= 3
    plain.close()
    size = {"width": 390, "height": 844}
    phone = Visit(browser, running.url, viewport=size, is_mobile=True, has_touch=True, color_scheme="dark").go("", TABLE)
    phone.page.wait_for_function(JUDGED)
    assert phone.page.locator("[data-rldk=first]").is_hidden()
    assert phone.page.evaluate("() => document.scrollingElement.scrollWidth <= window.innerWidth")
    phone.check()
    phone.close()
