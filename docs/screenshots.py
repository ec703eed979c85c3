"""Takes the pictures of README.md, docs/report.md and docs/dashboard.md: a scan, reports and the dashboard, of simulated runs.

    python docs/screenshots.py

It needs the development environment and chromium (`make chromium`), and takes about a minute.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from rich.console import Console
from rich.text import Text

from rldk.dashboard import Dashboard
from rldk.testing.streams import faulty, healthy

FOLDER = Path(__file__).parent / "images"
COLOURS = 128  # of a picture: enough for a page, at a third of the size
DRAWN = "[data-rldk=drawn] .js-plotly-plot .main-svg"
TABLE = "[data-testid=stDataFrame] canvas"
ROW, EDGE = 35, 18  # pixels of the table of runs: the height of a row, and where its box to tick is


def rldk(*arguments: str | Path, **environment: str) -> str:
    """What a command prints."""
    command = [sys.executable, "-m", "rldk", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    if not done.stdout:
        raise SystemExit(done.stderr)
    return done.stdout


def picture_of_scan(demo: Path) -> None:
    """The terminal as it looks after a scan."""
    width = 104
    text = rldk("scan", demo / "broken_events.jsonl", FORCE_COLOR="1", COLUMNS=str(width))
    console = Console(record=True, width=width, file=io.StringIO())
    console.print(Text.from_ansi(text.replace(str(demo), "out/demo").strip()))
    console.save_svg(str(FOLDER / "scan.svg"), title="rldk scan out/demo/broken_events.jsonl")


def write_sweep(folder: Path) -> None:
    """Two dozen runs of three learning rates and two KL coefficients; the highest rate with the lower coefficient fails."""
    for number in range(24):
        rate, coef, seed = (1e-6, 3e-6, 1e-5)[number % 3], (0.01, 0.05)[number // 3 % 2], number // 6
        fails = rate == 1e-5 and coef == 0.01
        events = faulty("kl_explosion", "ppo", 200, 80, number) if fails else healthy("ppo", 200, number)
        name = f"lr{rate:g}-kl{coef:g}-seed{seed}"
        for event in events:
            event.model_info["run_id"] = name
        events[0].model_info["config"] = {"learning_rate": rate, "kl_coef": coef, "seed": seed}
        log = folder / f"{name}_events.jsonl"
        log.write_bytes(b"".join(event.to_json() + b"\n" for event in events))
        os.utime(log, (time.time() - 1800 * (23 - number),) * 2)


@contextmanager
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium")
    if found is None:
        raise SystemExit("The pictures need chromium: make chromium")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=found, args=["--headless=new", "--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


def opened(chromium: Any, address: str, width: int, height: int, scheme: str = "light") -> Any:
    page = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme).new_page()
    page.set_default_timeout(60_000)
    page.goto(address, wait_until="commit")
    return page


def shoot(page: Any, name: str) -> None:
    """Save what the page shows, with few colours."""
    page.wait_for_timeout(2000)  # for what moves into its place
    path = FOLDER / f"{name}.png"
    page.screenshot(path=path)
    Image.open(path).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    page.context.close()
    print(f"{path.name}: {path.stat().st_size // 1000} kB")


def pictures_of_reports(chromium: Any, demo: Path, place: Path) -> None:
    for name, runs, height in (("report-incident", demo / "broken_events.jsonl", 1290), ("report-several", demo, 900)):
        path = place / f"{name}.html"
        rldk("report", runs, "-o", path)
        page = opened(chromium, path.as_uri(), 1180, height)
        page.wait_for_selector("svg path", state="attached")
        shoot(page, name)


def pictures_of_a_run(chromium: Any, demo: Path) -> None:
    with Dashboard(demo, port=0) as dashboard:
        address = f"{dashboard.url}/?run=broken_events.jsonl"
        page = opened(chromium, address, 1280, 1180)
        page.wait_for_selector(DRAWN)
        shoot(page, "dashboard-overview")
        page = opened(chromium, address, 1280, 1180, "dark")
        page.wait_for_selector(DRAWN)
        page.get_by_role("radio", name="Alerts", exact=True).first.click()
        page.get_by_role("heading", name="Anomalies").wait_for()
        page.wait_for_selector(DRAWN)
        shoot(page, "dashboard-alerts-dark")


def picture_of_runs(chromium: Any, sweep: Path) -> None:
    """The table, with two runs that failed and two that did not drawn over each other."""
    with Dashboard(sweep, port=0) as dashboard:
        page = opened(chromium, dashboard.url, 1400, 1250)
        page.wait_for_selector(TABLE)
        page.wait_for_timeout(4000)
        box = page.get_by_label("Search", exact=True).first
        box.fill(r"-seed[01]\b")
        box.press("Enter")
        page.wait_for_timeout(3000)
        table = page.locator(TABLE).first.bounding_box()
        for row in (1, 2, 4, 5):
            page.mouse.click(table["x"] + EDGE, table["y"] + ROW * (row + 0.5))
            page.wait_for_timeout(1500)
        page.wait_for_selector(DRAWN, state="attached")
        shoot(page, "dashboard-runs")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        demo, sweep = Path(folder) / "demo", Path(folder) / "sweep"
        rldk("demo", "-o", demo)
        sweep.mkdir()
        write_sweep(sweep)
        rldk("index", sweep)
        picture_of_scan(demo)
        with browser() as chromium:
            pictures_of_reports(chromium, demo, Path(folder))
            pictures_of_a_run(chromium, demo)
            picture_of_runs(chromium, sweep)


if __name__ == "__main__":
    main()
