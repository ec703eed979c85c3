"""The dashboard against its bars, in a real browser: a run of a million events, a run that grows, a folder of 200 runs.

    python benchmarks/dashboard/page.py [--events 1000000] [--runs 200] [--seconds 60]

Times are of the clock; beside them the processor time that Chromium took, which a busy machine hardly changes. The first
picture is what is painted first: name, verdict and curves as plain SVG. The page to work with follows it, and is timed too.
The files are written to a temporary folder, which is removed at the end.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import psutil

from rldk.dashboard import Dashboard
from rldk.dashboard.client import Client
from rldk.dashboard.page.panels import RunView, overview_panels, panels_for
from rldk.dashboard.page.plots import figure_of
from rldk.testing.streams import healthy

ARGUMENTS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
PAINTED = (
    "() => performance.getEntriesByName('first-contentful-paint').length && document.querySelector('[data-rldk=first] svg path')"
)
TIMES = """() => [performance.getEntriesByType('navigation')[0].responseStart,
  performance.getEntriesByName('first-contentful-paint')[0].startTime]"""
DRAWN = "[data-rldk=drawn]"
COUNTED = """() => { window.rldkDrawn = 0; new MutationObserver((seen) => { window.rldkDrawn += seen.length; }).observe(
  document.querySelector('[data-rldk=drawn]'), {attributeFilter: ['data-took']}); }"""
READ = "() => !/of the log has been read/.test(document.querySelector('[data-rldk=header]').innerText)"
PLOTS = "[...document.querySelectorAll('.js-plotly-plot')].filter(plot => plot._fullData)"
WRITER = """
import sys, time
from pathlib import Path
from rldk.log import EventWriter
from rldk.testing.streams import healthy
with EventWriter(Path(sys.argv[1])) as log:
    for event in healthy("ppo", 20_000, 1):
        log.write(event)
        time.sleep(float(sys.argv[2]))
"""


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
    print(f"  {name:66} {measured:>24}  {bar}", flush=True)


def verdict(value: float, bar: float) -> str:
    return f"bar {bar:g} s: {'holds' if value <= bar else 'MISSED'}"


@contextmanager
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        yield found
        found.close()


def new_page(chromium: Any) -> Any:
    page = chromium.new_context(viewport={"width": 1360, "height": 1000}).new_page()
    page.set_default_timeout(300_000)
    return page


def chrome() -> list[psutil.Process]:
    return [child for child in psutil.Process().children(recursive=True) if "chrom" in child.name()]


def cpu() -> float:
    return sum(sum(process.cpu_times()[:2]) for process in chrome())


def megabytes(processes: list[psutil.Process]) -> str:
    """What these hold together; memory that several share is counted once."""
    return f"{sum(process.memory_full_info().pss for process in processes) / 1e6:.0f} MB"


def heap(page: Any) -> tuple[float, int]:
    """What the scripts of a page hold after a sweep, in MB, and how many nodes it has."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    found = {entry["name"]: entry["value"] for entry in session.send("Performance.getMetrics")["metrics"]}
    session.detach()
    return found["JSHeapUsedSize"] / 1e6, int(found["Nodes"])


def main_thread(session: Any) -> float:
    """The processor time that the page's main thread has taken, with all that Streamlit does in it."""
    found = {entry["name"]: entry["value"] for entry in session.send("Performance.getMetrics")["metrics"]}
    return float(found["TaskDuration"])


def measure_pages(folder: Path, key: str, events: int) -> None:
    started = time.monotonic()
    with Dashboard(folder, port=0) as dashboard, browser() as chromium:
        say("server answers", f"{time.monotonic() - started:.2f} s")
        for visit in ("first visit, nothing cached in the browser", "another visit"):
            page = new_page(chromium)
            begun, worked = time.monotonic(), cpu()
            page.goto(f"{dashboard.url}/?run={key}", wait_until="commit")
            page.wait_for_function(PAINTED, polling=20)
            answered, took = (entry / 1000 for entry in page.evaluate(TIMES))
            shown = page.evaluate("() => document.querySelector('[data-rldk=first]').innerText").split("\n")
            curves = page.locator("[data-rldk=first] svg").count()
            say(f"first picture, {visit}", f"{took:.2f} s", f"{verdict(took, 2.0)} (the answer came after {answered:.2f} s)")
            page.wait_for_selector(DRAWN, state="attached")
            took, used = time.monotonic() - begun, cpu() - worked
            say("  the page to work with, its plots in view drawn", f"{took:.2f} s ({used:.1f} s cpu)", verdict(took, 4.0))
            if visit != "another visit":
                print(f"    on the first picture: {curves} panels; {' · '.join(line for line in shown[:6] if line)}")
                page.context.close()
        begun = time.monotonic()
        page.wait_for_function(READ, polling=100)
        say("the whole log read, after that", f"{time.monotonic() - begun:.1f} s")
        measure_zoom(page, events)
        server = psutil.Process(dashboard.pid)
        say("memory of the server", megabytes([server]))
        say("memory of the reader", megabytes(server.children(recursive=True)))
        say("memory of Chromium, all processes", megabytes(chrome()))
        points = page.evaluate(f"() => {PLOTS}.flatMap(plot => plot._fullData.map(trace => trace.x.length))")
        say("points in the browser, the most in one curve", str(max(points)))


def measure_zoom(page: Any, events: int) -> None:
    area = page.locator(".js-plotly-plot").first.locator(".nsewdrag").first
    while (box := area.bounding_box()) is None:  # the plots of the whole log are just being drawn in place of the sketch
        time.sleep(0.1)
    height = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.5 * box["width"], height)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.55 * box["width"], height, steps=4)
    begun = time.monotonic()
    page.mouse.up()
    page.wait_for_selector("[data-rldk=range]")
    inside = f"plot._fullData[0].x.length > 100 && Math.min(...plot._fullData[0].x) > {0.4 * events}"
    page.wait_for_function(f"() => {PLOTS}.slice(0, 2).every(plot => {inside})", polling=20)
    say(f"zoom into 5 % of {events} events: the detail is drawn", f"{time.monotonic() - begun:.2f} s")


def measure_refresh(folder: Path, key: str) -> None:
    """What the server does for one refresh: ask the reader, make the figures, write them for the browser."""
    client = Client(folder)
    while client.ask("state", key=key)["progress"] < 1.0:
        time.sleep(1.0)
    for name in ("the overview", "every panel there is"):
        times, used = [], []
        for _ in range(9):
            begun, worked = time.monotonic(), time.process_time()
            view = RunView(client, key, client.ask("state", key=key))
            panels = overview_panels(view) if name == "the overview" else panels_for(view, others=True)
            size = sum(len(bytes(figure_of(view, panel)["spec"])) for panel in panels)
            times.append(time.monotonic() - begun)
            used.append(time.process_time() - worked)
        took, told = median(times), f"{len(panels)} plots, {size / 1e3:.0f} kB"
        say(f"refresh of {name} ({told}), server", f"{took:.2f} s ({median(used):.2f} s cpu)", verdict(took, 0.5))
    client.close()


def measure_growing(folder: Path, seconds: float) -> None:
    """A run that another process writes: when it appears, how soon a line is a point on the screen, what is held in the end."""
    log = folder / "live_events.jsonl"
    with Dashboard(folder, port=0) as dashboard, browser() as chromium:
        page = new_page(chromium)
        page.goto(dashboard.url, wait_until="commit")
        page.wait_for_selector("[data-rldk=empty]")
        page.wait_for_timeout(3000)
        with subprocess.Popen([sys.executable, "-c", WRITER, str(log), "0.05"]) as writer, ending(writer):
            while not log.exists() or not log.stat().st_size:
                time.sleep(0.005)
            begun = time.monotonic()
            page.wait_for_function(f"() => {PLOTS}.length && {PLOTS}[0]._fullData[0].x.length > 1", polling=20)
            took = time.monotonic() - begun
            say("a run that begins: from its first line to its curve", f"{took:.2f} s", verdict(took, 3.0))
            page.wait_for_selector(DRAWN, state="attached")
            page.wait_for_timeout(8000)
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable", {"timeDomain": "threadTicks"})
            page.evaluate(COUNTED)
            late, drawing, worked = [], [], main_thread(session)
            for _ in range(15):
                step = last_step(log)
                begun = time.monotonic()
                page.wait_for_function(f"() => Math.max(...{PLOTS}[0]._fullData[0].x) >= {step}", polling=20)
                late.append(time.monotonic() - begun)
                drawing.append(float(page.evaluate(f"() => document.querySelector('{DRAWN}').dataset.took")) / 1000)
                page.wait_for_timeout(370)
            worst = max(late)
            say(
                "a line of a run at 20 a second: until it is a point on the screen",
                f"{median(late):.2f} s",
                f"at worst {worst:.2f} s",
            )
            say("  that within 3 s, at worst", f"{worst:.2f} s", verdict(worst, 3.0))
            took, used = median(drawing), (main_thread(session) - worked) / max(1, page.evaluate("() => window.rldkDrawn"))
            say("drawing the plots in view again, browser", f"{took:.2f} s ({used:.2f} s cpu)", verdict(took, 0.5))
            server = psutil.Process(dashboard.pid)
            for part in ("at first", f"after {seconds:g} s more"):
                if part != "at first":
                    page.wait_for_timeout(1000 * seconds)
                held, nodes = heap(page)
                told = f"{held:.0f} MB, {nodes} nodes"
                say(f"scripts of the page hold, {part}", told, f"Chromium {megabytes(chrome())}, server {megabytes([server])}")


@contextmanager
def ending(process: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()


def last_step(log: Path) -> int:
    with log.open("rb") as file:
        file.seek(-8192, 2)
        return int(msgspec.json.decode(file.read().split(b"\n")[-2])["step"])


def measure_picker(folder: Path, runs: int) -> None:
    for number in range(runs):
        write_run(folder / f"run{number:03}_events.jsonl", 300)
    with Dashboard(folder, port=0) as dashboard, browser() as chromium:
        page = new_page(chromium)
        page.goto(f"{dashboard.url}/?run=run000_events.jsonl", wait_until="commit")
        page.wait_for_selector(DRAWN, state="attached")
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
    parser.add_argument("--seconds", type=float, default=60.0, help="how long a growing run is followed for its memory")
    args = parser.parse_args(argv)
    if shutil.which("chromium") is None:
        print("The dashboard is not measured: there is no chromium (make chromium).")
        return 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in ("large", "many", "live"):
            (folder / name).mkdir()
        write_run(folder / "large" / "large_events.jsonl", args.events)
        size = (folder / "large" / "large_events.jsonl").stat().st_size
        load = psutil.getloadavg()[0]
        print(
            f"The dashboard: a run of {args.events} events, {size / 1e9:.2f} GB; {psutil.cpu_count()} processors, load {load:.1f}"
        )
        measure_pages(folder / "large", "large_events.jsonl", args.events)
        measure_refresh(folder / "large", "large_events.jsonl")
        print("A run that grows")
        measure_growing(folder / "live", args.seconds)
        print(f"A folder of {args.runs} runs")
        measure_picker(folder / "many", args.runs)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
