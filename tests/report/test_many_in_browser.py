"""The page about many runs in a real browser: sorting, searching, choosing what is drawn, groups, axes, and a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rldk.core.event import Event
from rldk.fleet.row import row_of
from rldk.report import Case, page, write_report

pytestmark = pytest.mark.full

RUNS = 60
HOSTILE = "</script><img src=x onerror=\"document.title='owned'\">"


@pytest.fixture(scope="module")
def content(case_of: Callable[..., Case]) -> str:
    """Sixty runs, of which six are shown in detail and one is thirty times as long as the others."""
    cases = []
    for number in range(6):
        length = 900 if number == 0 else 30
        events = [Event(n, {"reward_mean": number + n / length, "kl_mean": 0.1}) for n in range(length)]
        events[0].model_info["config"] = {"learning_rate": (1e-6, 1e-5)[number % 2], "seed": number // 2}
        cases.append(case_of(events, HOSTILE if number == 5 else f"run{number}"))
    row = row_of(cases[1].judgement, 0)
    config = [{"learning_rate": rate, "seed": 9} for rate in (1e-6, 1e-5)]
    others = [
        {**row, "name": f"x{number:02}", "reward": 100.0 - number, "config": config[number % 2]} for number in range(RUNS - 6)
    ]
    return page(cases, others=others)


@pytest.fixture
def show(browser: Any, tmp_path: Path, content: str) -> Iterator[Callable[..., Any]]:
    """Open the page; anything that the browser complains of fails the test."""
    complaints: list[str] = []
    opened: list[Any] = []

    def make(width: int = 1280, **options: Any) -> Any:
        tab = browser.new_page(viewport={"width": width, "height": 900}, **options)
        tab.set_default_timeout(10_000)
        tab.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.goto(write_report(tmp_path / "page.html", content).as_uri())
        opened.append(tab)
        return tab

    yield make
    for tab in opened:
        tab.close()
    assert complaints == []


def shown_rows(tab: Any) -> list[str]:
    """The names of the runs that the table shows, in their order."""
    names: list[str] = tab.evaluate(
        "[...document.querySelectorAll('table.runs tbody tr:not([hidden])')].map(one => one.cells[0].innerText.trim())"
    )
    return names


def drawn(tab: Any) -> list[str]:
    """The colours of the curves in the first figure."""
    strokes: list[str] = tab.locator("#panel-1 > svg g.plot path[fill=none]").evaluate_all(
        "all => all.map(one => one.getAttribute('stroke')).filter(one => one.startsWith('var(--rldk-s'))"
    )
    return strokes


def test_the_table_is_sorted_by_a_click_on_a_heading(show: Callable[..., Any]) -> None:
    tab = show()
    assert len(shown_rows(tab)) == 50
    tab.get_by_role("button", name="last reward").click()
    assert shown_rows(tab)[:3] == ["x00", "x01", "x02"]
    assert tab.locator("th", has_text="last reward").get_attribute("aria-sort") == "descending"
    tab.get_by_role("button", name="last reward").click()
    assert shown_rows(tab)[:2] == ["run0", "run1"]
    tab.get_by_role("button", name=f"Show all {RUNS} runs").click()
    assert len(shown_rows(tab)) == RUNS


def test_the_table_is_searched_by_text_or_pattern(show: Callable[..., Any]) -> None:
    tab = show()
    search = tab.get_by_role("searchbox")
    search.fill("^run[24]")
    assert shown_rows(tab) == ["run2", "run4"]
    search.fill("(")  # not a pattern, and in no row
    assert shown_rows(tab) == []
    search.fill("")
    assert len(shown_rows(tab)) == 50


def test_five_runs_are_drawn_and_no_two_share_a_colour(show: Callable[..., Any]) -> None:
    tab = show()
    assert len(drawn(tab)) == len(set(drawn(tab))) == 5
    tab.get_by_role("checkbox", name="Draw x07").check()
    assert len(set(drawn(tab))) == 6, "one click away"
    first = tab.locator("table.runs tbody tr").first.get_by_role("checkbox")
    first.uncheck()
    assert len(set(drawn(tab))) == 5
    tab.get_by_role("button", name="Those in the table").click()
    assert len(drawn(tab)) == len(set(drawn(tab))) == 32
    assert "18 more are not" in tab.locator("#curve-tools").inner_text()
    tab.get_by_role("button", name="None", exact=True).click()
    assert drawn(tab) == [] and tab.locator("#panel-1").is_hidden()
    tab.get_by_role("button", name="The worst 5").click()
    assert len(drawn(tab)) == 5


def test_a_click_in_the_legend_hides_a_run(show: Callable[..., Any]) -> None:
    tab = show()
    tab.locator("#panel-1 .legend button").first.click()
    assert len(drawn(tab)) == 4 and tab.locator("#panel-1 .legend button").count() == 4


def ticks(tab: Any) -> list[str]:
    found: list[str] = tab.locator("#panel-1 > svg g.axes text[text-anchor=middle]").all_text_contents()
    return found


def test_the_axis_suits_the_runs_that_are_drawn_until_one_is_chosen(show: Callable[..., Any]) -> None:
    tab = show()
    tab.get_by_role("button", name="None", exact=True).click()
    for name in ("run1", "run2"):
        tab.get_by_role("checkbox", name=f"Draw {name}").check()
    assert float(ticks(tab)[-1]) <= 30
    tab.get_by_role("checkbox", name="Draw run0").check()
    assert ticks(tab)[:3] == ["1", "10", "100"], "one of the three is thirty times as long"
    axis = tab.locator("#curve-tools select").first
    axis.select_option("progress")
    assert ticks(tab)[-1] == "100" and "%" in tab.locator("#panel-1 > svg").text_content()
    axis.select_option("step")
    assert float(ticks(tab)[-1]) >= 500


def test_groups_have_a_mean_and_a_band(show: Callable[..., Any]) -> None:
    tab = show()
    tab.locator("#curve-tools select").nth(1).select_option("learning_rate")
    assert "learning_rate=1e-06 (30 runs)" in tab.locator("#panel-1 .legend").inner_text()
    assert tab.locator("#panel-1 > svg g.plot path[fill-opacity]").count() == 2 and len(drawn(tab)) == 2
    tab.locator("#curve-tools select").nth(1).select_option("")
    assert len(drawn(tab)) == 5


def test_the_pointer_names_the_nearest_run(show: Callable[..., Any]) -> None:
    tab = show()
    tab.evaluate("document.querySelector('#panel-1').scrollIntoView({block: 'center', behavior: 'instant'})")
    box = tab.locator("#panel-1 > svg").bounding_box()
    tab.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 8)
    first = tab.locator("#panel-1 .tip > div").nth(1).inner_text()
    tab.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + box["height"] - 40)
    assert tab.locator("#panel-1 .tip > div").nth(1).inner_text() != first


def test_a_phone_shows_all_of_it_without_sideways_scrolling(show: Callable[..., Any]) -> None:
    tab = show(width=390, has_touch=True, is_mobile=True)
    tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    ends = tab.evaluate("[...document.querySelectorAll('table.runs td')].map(one => one.getBoundingClientRect().right)")
    assert max(ends) <= 391 and len(shown_rows(tab)) == 12
    tab.get_by_label("Sort by").select_option(label="last reward")
    assert shown_rows(tab)[0] == "x00"


def test_a_link_opens_a_run_that_is_folded_away(show: Callable[..., Any]) -> None:
    tab = show()
    tab.locator("table.runs a[href='#run-6']").click()
    tab.locator("#run-6 > details[open]").wait_for(state="attached")  # the address changes first, and then the script is told


def test_hostile_names_do_nothing(show: Callable[..., Any]) -> None:
    tab = show()
    tab.get_by_role("checkbox", name="onerror").check()
    assert tab.locator("main img").count() == 0 and "owned" not in tab.title()
    assert "</script><img" in tab.locator("#panel-1 .legend").inner_text() + tab.locator("table.runs").inner_text()


def test_without_its_script_the_table_is_whole(show: Callable[..., Any]) -> None:
    tab = show(java_script_enabled=False)
    assert tab.locator("table.runs tbody tr").count() == RUNS and tab.get_by_role("button").count() == 0
    assert len(drawn(tab)) == 5
