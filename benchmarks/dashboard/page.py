"""The dashboard against its bars: a run of a million events, and a folder of two hundred runs, in a real browser.

    python benchmarks/dashboard/page.py [--events 1000000] [--runs 200]

Times are of the clock, from the click to the picture; beside them the processor time that Chromium took, which a busy
machine does not change. The files are written to a temporary folder, which is removed at the end.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psutil

from rldk.dashboard import Dashboard
from rldk.dashboard.client import Client
from rldk.dashboard.page.context import Look
from rldk.dashboard.page.curves import panels_for
from rldk.plots.plotly_figure import plotly_figure
from rldk.testing.streams import healthy

ARGUMENTS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
PLOT = ".js-plotly-plot .main-svg"
OVERVIEW = ("reward", "kl", "entropy", "gradients", "length", "losses")


def write_run(path: Path, events: int) -> None:
    """A run of so many events of 39 metrics, as the event log holds them."""
    rows = [event.to_dict() for event in healthy("ppo", min(events, 20_000), 1)]
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as file:
        for number in range(events):
            row = rows[number % len(rows)]
            row["step"], row["wall_time"] = number + 1, 1.7e9 + 2.0 * number
            file.write(encode(row) + b"\n")


def say(name: str, measured: str, bar: str = "") -> None:
    print(f"  {name:58} {measured:>22}  {bar}")


def verdict(value: float, bar: float) -> str:
    return f"bar {bar:g} s: {'holds' if value <= bar else 'MISSED'}"


@contextmanager
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        yield found
        found.close()


def chrome() -> list[psutil.Process]:
    return [child for child in psutil.Process().children(recursive=True) if "chrom" in child.name()]


def cpu() -> float:
    return sum(sum(process.cpu_times()[:2]) for process in chrome())


def megabytes(processes: list[psutil.Process]) -> str:
    return f"{sum(process.memory_info().rss for process in processes) / 1e6:.0f} MB"


def measure_pages(folder: Path, key: str, events: int) -> None:
    started = time.monotonic()
    with Dashboard(folder, port=0) as dashboard, browser() as chromium:
        say("server answers", f"{time.monotonic() - started:.2f} s")
        context = chromium.new_context(viewport={"width": 1360, "height": 1000})
        for visit in ("first visit, nothing cached in the browser", "second visit"):
            page = context.new_page()
            page.set_default_timeout(300_000)
            begun, worked = time.monotonic(), cpu()
            page.goto(f"{dashboard.url}/?run={key}")
            page.wait_for_selector(PLOT)
            took = time.monotonic() - begun
            say(f"first picture, {visit}", f"{took:.2f} s ({cpu() - worked:.1f} s cpu)", verdict(took, 3.0))
            if visit != "second visit":
                page.close()
        server = psutil.Process(dashboard.pid)
        reader = server.children(recursive=True)
        begun = time.monotonic()
        page.wait_for_function("() => !document.querySelector('[data-rldk=header]').innerText.includes('sketch')")
        say("the whole log read, after the second picture", f"{time.monotonic() - begun:.1f} s")
        area = page.locator(".js-plotly-plot").first.locator(".nsewdrag").first
        area.scroll_into_view_if_needed()
        box = area.bounding_box()
        height = box["y"] + box["height"] / 2
        page.mouse.move(box["x"] + 0.5 * box["width"], height)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.55 * box["width"], height, steps=4)
        begun = time.monotonic()
        page.mouse.up()
        page.wait_for_selector("[data-rldk=range]")
        say(f"zoom into 5 % of {events} events: the detail is there", f"{time.monotonic() - begun:.2f} s")
        say("memory of the server", megabytes([server]))
        say("memory of the reader", megabytes(reader))
        say("memory of Chromium, all processes", megabytes(chrome()))
        curves = "[...document.querySelectorAll('.js-plotly-plot')].flatMap(plot => plot._fullData.map(trace => trace.x.length))"
        points = page.evaluate(f"() => {curves}")
        say("points in the browser, the most in one curve", str(max(points)))
        page.close()


def measure_refresh(folder: Path, key: str) -> None:
    """What the server does for one refresh: ask the reader, make the figures, write them as JSON."""
    client = Client(folder)
    while client.ask("state", key=key)["progress"] < 1.0:
        time.sleep(1.0)
    for name, only in (("the overview", OVERVIEW), ("every panel there is", None)):
        times = []
        for _ in range(7):
            begun = time.monotonic()
            look = Look(client, key, None, client.ask("state", key=key))
            panels = panels_for(look.runs(), span=None, only=only)
            size = sum(len(plotly_figure(panel).to_json()) for panel in panels)
            times.append(time.monotonic() - begun)
        took = sorted(times)[len(times) // 2]
        say(f"refresh of {name} ({len(panels)} plots, {size / 1e3:.0f} kB), server", f"{took:.2f} s", verdict(took, 0.5))
    client.close()


def measure_picker(folder: Path, runs: int) -> None:
    for number in range(runs):
        write_run(folder / f"run{number:03}_events.jsonl", 300)
    with Dashboard(folder, port=0) as dashboard, browser() as chromium:
        page = chromium.new_context().new_page()
        page.goto(dashboard.url)
        page.get_by_test_id("stSelectbox").first.wait_for()
        page.wait_for_selector(PLOT)
        begun = time.monotonic()
        page.get_by_test_id("stSelectbox").first.locator("input").click()
        page.get_by_role("option").first.wait_for()
        took = time.monotonic() - begun
        say(f"the picker of {runs} runs opens", f"{took:.2f} s", verdict(took, 2.0))
    client = Client(folder)
    client.ask("list")
    begun = time.monotonic()
    found = len(client.ask("list")["files"])
    say(f"listing {found} runs", f"{1000 * (time.monotonic() - begun):.0f} ms")
    client.close()


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=200)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "large").mkdir()
        (folder / "many").mkdir()
        write_run(folder / "large" / "large_events.jsonl", args.events)
        size = (folder / "large" / "large_events.jsonl").stat().st_size
        load = psutil.getloadavg()[0]
        print(f"A run of {args.events} events, {size / 1e9:.2f} GB; {psutil.cpu_count()} processors, load {load:.1f}")
        measure_pages(folder / "large", "large_events.jsonl", args.events)
        measure_refresh(folder / "large", "large_events.jsonl")
        print(f"A folder of {args.runs} runs")
        measure_picker(folder / "many", args.runs)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
