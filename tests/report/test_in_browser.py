"""The page in a real browser: no complaint, values under the pointer, zoom, themes, phone, print, keyboard, hostile text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rldk.core.event import Event
from rldk.report import Case, page, write_report

pytestmark = pytest.mark.full

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"><svg onload=alert(1)>"


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Open a page; anything that the browser complains of or asks the network for fails the test."""
    complaints: list[str] = []
    opened: list[Any] = []

    def make(content: str, width: int = 1280, **options: Any) -> Any:
        path = write_report(tmp_path / f"page{len(opened)}.html", content)
        tab = browser.new_page(viewport={"width": width, "height": 800}, **options)
        tab.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on(
            "request", lambda request: complaints.append(request.url) if not request.url.startswith(("file:", "data:")) else None
        )
        tab.on("dialog", lambda dialog: (complaints.append("dialog"), dialog.dismiss()))
        tab.goto(path.as_uri())
        opened.append(tab)
        return tab

    yield make
    for tab in opened:
        tab.close()
    assert complaints == []


@pytest.fixture(scope="module")
def broken(cases: dict[str, Case]) -> str:
    return page([cases["broken"]])


def first_curve(tab: Any, panel: str = "#panel-1") -> str:
    return str(tab.locator(f"{panel} > svg g.plot path[fill=none]").last.get_attribute("d"))


def place_of(tab: Any, panel: str = "#panel-1") -> dict[str, float]:
    """Where a picture lies on the screen, once it is there."""
    tab.evaluate(f"document.querySelector('{panel}').scrollIntoView({{block: 'center', behavior: 'instant'}})")
    found: dict[str, float] = tab.locator(f"{panel} > svg").bounding_box()
    return found


def test_values_appear_under_the_pointer(show: Callable[..., Any], broken: str, cases: dict[str, Case]) -> None:
    tab = show(broken)
    box = place_of(tab)
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tip = tab.locator("#panel-1 .tip")
    step = int(tip.inner_text().split()[1])
    panel = cases["broken"].evidence_panels(cases["broken"].judgement.incidents[0])[0]
    value = panel.curves[0].y[panel.curves[0].x.tolist().index(step)]
    shown = float(tip.inner_text().split()[3])
    assert shown == pytest.approx(value, rel=1e-3) and abs(step - 150) < 20
    tab.mouse.move(2, 2)
    assert tip.is_hidden()


def test_dragging_zooms_all_panels_and_a_double_click_shows_all_again(show: Callable[..., Any], broken: str) -> None:
    tab = show(broken)
    before, other = first_curve(tab), first_curve(tab, "#panel-6")
    box = place_of(tab)
    middle = box["y"] + box["height"] / 2
    tab.mouse.move(box["x"] + box["width"] * 0.4, middle)
    tab.mouse.down()
    tab.mouse.move(box["x"] + box["width"] * 0.6, middle, steps=4)
    tab.mouse.up()
    assert first_curve(tab) != before and first_curve(tab, "#panel-6") != other
    ticks = [float(text) for text in tab.locator("#panel-1 > svg g.axes text[text-anchor=middle]").all_text_contents()]
    assert len(ticks) >= 2 and min(ticks) > 90 and max(ticks) < 200
    button = tab.get_by_role("button", name="Show all steps")
    assert button.is_visible()
    tab.mouse.dblclick(box["x"] + box["width"] / 2, middle)
    assert button.is_hidden()
    ticks = [float(text) for text in tab.locator("#panel-1 > svg g.axes text[text-anchor=middle]").all_text_contents()]
    assert max(ticks) >= 200


@pytest.mark.parametrize("kind", ["broken", "odd"])
def test_the_script_draws_what_the_page_had_drawn(
    show: Callable[..., Any], broken: str, case_of: Callable[..., Case], kind: str
) -> None:
    """Zooming and going back gives the picture that was there without a script, to a tenth of a pixel or two."""
    odd = [
        Event(
            n,
            {"grad_norm": 10.0 ** (n % 7 if n > 50 else 0), "kl_mean": float("nan") if n % 9 == 0 else 0.1 * n, "clip_frac": 0.0},
        )
        for n in range(80)
    ]
    tab = show(broken if kind == "broken" else page([case_of(odd)]))
    count = tab.locator("figure.panel").count()

    def numbers() -> list[list[float]]:
        drawn = tab.locator("figure.panel > svg g.plot").evaluate_all(
            "all => all.map(one => [...one.querySelectorAll('path')].map(path => path.getAttribute('d')).join(' '))"
        )
        return [[float(number) for number in re.findall(r"-?[0-9.]+", path)] for path in drawn]

    before = numbers()
    tab.locator("#panel-1").focus()
    tab.keyboard.press("+")
    assert numbers() != before
    tab.keyboard.press("Escape")
    after = numbers()
    assert len(before) == len(after) == count
    for one, other in zip(before, after, strict=True):
        assert len(one) == len(other) and max((abs(a - b) for a, b in zip(one, other, strict=True)), default=0.0) <= 0.21


def test_the_keyboard_moves_through_the_values(show: Callable[..., Any], broken: str) -> None:
    tab = show(broken)
    tab.locator("#panel-2").focus()
    tab.keyboard.press("ArrowLeft")
    first = tab.locator("#panel-2 .tip").inner_text()
    tab.keyboard.press("ArrowLeft")
    assert tab.locator("#panel-2 .tip").inner_text() != first
    tab.keyboard.press("Tab")
    assert tab.locator("#panel-2 .tip").is_hidden()


def test_light_and_dark_follow_the_system_and_the_button(show: Callable[..., Any], broken: str) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    light, dark = show(broken, color_scheme="light"), show(broken, color_scheme="dark")
    assert light.evaluate(ground) == "rgb(245, 247, 249)" and dark.evaluate(ground) == "rgb(14, 17, 22)"
    light.get_by_role("button", name="Show in dark colours").click()
    assert light.evaluate(ground) == dark.evaluate(ground)
    dark.get_by_role("button", name="Show in light colours").click()
    assert dark.evaluate(ground) == "rgb(245, 247, 249)"
    dark.emulate_media(media="print", color_scheme="dark")
    assert dark.evaluate(ground) == "rgb(255, 255, 255)"


CONTRASTS = """
() => {
  const part = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = (c) => 0.2126 * part(c[0]) + 0.7152 * part(c[1]) + 0.0722 * part(c[2]);
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.offsetParent || element.closest('script,style,svg')) continue;
    let under = element, back = [0, 0, 0, 0];
    const clear = () => (back = rgb(getComputedStyle(under).backgroundColor)).length === 4 && back[3] === 0;
    while (under && clear()) under = under.parentElement;
    const [high, low] = [light(rgb(getComputedStyle(element).color)), light(back)].sort((a, b) => b - a);
    found.push([(high + 0.05) / (low + 0.05), walker.currentNode.data.trim().slice(0, 40)]);
  }
  return found;
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_words_can_be_read_against_what_is_behind_them(show: Callable[..., Any], broken: str, scheme: str) -> None:
    tab = show(broken, color_scheme=scheme)
    tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    found = tab.evaluate(CONTRASTS)
    assert len(found) > 100 and [pair for pair in found if pair[0] < 4.5] == []


def test_a_phone_needs_no_sideways_scrolling(show: Callable[..., Any], cases: dict[str, Case]) -> None:
    for content in (page([cases["broken"]]), page(list(cases.values())), page([], [("x" * 300, "is empty")])):
        tab = show(content, width=360, has_touch=True, is_mobile=True)
        tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 360
        sizes = tab.evaluate("[...document.querySelectorAll('figure.panel')].map(one => one.getBoundingClientRect().width)")
        assert all(280 <= size <= 360 for size in sizes)


def test_the_page_has_its_landmarks_and_every_picture_its_words(show: Callable[..., Any], broken: str) -> None:
    tab = show(broken)
    assert tab.get_by_role("main").count() == 1 and tab.get_by_role("navigation").count() == 1
    assert tab.locator("h1").count() == 1 and tab.locator("html").get_attribute("lang") == "en"
    figures = tab.locator("figure.panel > svg")
    words = figures.evaluate_all("all => all.map(one => one.getAttribute('role') + ' ' + one.getAttribute('aria-label'))")
    assert len(words) > 15 and all(said.startswith("img ") and "between" in said for said in words)
    for link in tab.locator("nav a").all():
        assert tab.locator(str(link.get_attribute("href"))).count() == 1


def test_it_prints_on_paper_with_everything_unfolded(show: Callable[..., Any], broken: str) -> None:
    tab = show(broken)
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.locator("details:not([open])").count() == 0
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.locator("details[open]").count() == 0
    assert tab.pdf(format="A4").startswith(b"%PDF")


def test_it_is_whole_without_its_script(browser: Any, show: Callable[..., Any], broken: str) -> None:
    tab = show(broken, java_script_enabled=False)
    assert tab.locator("figure.panel > svg g.plot path").count() > 30
    assert tab.get_by_role("button").count() == 0  # nothing to press that would do nothing


def test_hostile_text_is_shown_and_does_nothing(show: Callable[..., Any], case_of: Callable[..., Case]) -> None:
    events = [Event(n, {"reward_mean": 0.1 * n, "kl_mean": 0.1, HOSTILE: float(n % 3)}) for n in range(30)]
    for event in events:
        event.notes = [HOSTILE]
    case = case_of(events, HOSTILE)
    case.judgement.run.notes.append(HOSTILE)
    tab = show(page([case, case], [(HOSTILE, HOSTILE)]))
    tab.wait_for_timeout(200)
    assert "owned" not in tab.title() or tab.title().startswith("rldk report")
    assert tab.locator("img").count() == 0 and tab.evaluate("document.scripts.length") == tab.locator("figure.panel").count() + 2
    assert "<script>document.title" in tab.locator("main").inner_text()
    box = place_of(tab)
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert "<script>" in tab.locator("#panel-1 .tip").inner_text()


def test_an_injected_script_would_not_run(show: Callable[..., Any], broken: str, browser: Any, tmp_path: Path) -> None:
    """The page's policy is a second wall: even markup that got through has no effect."""
    path = write_report(tmp_path / "injected.html", broken.replace("</main>", "<script>document.title='owned'</script></main>"))
    tab = browser.new_page()
    tab.goto(path.as_uri())
    assert tab.title() != "owned"
    tab.close()
