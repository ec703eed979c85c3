"""The dashboard's table of runs against its bars, in a real browser: a folder of 1,000 runs with an index.

    python benchmarks/dashboard/runs.py [--runs 1000] [--rows 300] [--pictures DIR] [--folder DIR]

Times are of the clock; beside them the processor time of the browser and of the server's processes, which a busy machine hardly
changes. With `--pictures`, the page is painted light and dark, wide and on a phone. Without `--folder`, the runs are written to a
temporary folder, which is removed at the end.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import psutil
from page import DRAWN, browser, cpu, say, verdict

from rldk.dashboard import Dashboard
from rldk.testing.streams import faulty, healthy

TABLE = "[data-testid=stDataFrame] canvas"
SEEN = f"() => document.querySelector('[data-rldk=first] table tr:nth-child(5), {TABLE}')"
LEGEND = "document.querySelectorAll('.rldk-legend button').length"
PLOTS = "[...document.querySelectorAll('.js-plotly-plot')].filter(plot => plot._fullData)"
ROW, EDGE = 35, 18


def write_runs(folder: Path, runs: int, rows: int) -> None:
    """Runs of 39 metrics with a configuration each: three learning rates, two KL coefficients, seeds; one in twelve fails."""
    bases = [[event.to_dict() for event in healthy("ppo", rows, seed)] for seed in range(11)]
    bases.append([event.to_dict() for event in faulty("kl_explosion", "ppo", rows, rows // 3, 1)])
    encode, now = msgspec.json.Encoder().encode, time.time()
    for number in range(runs):
        config = {"learning_rate": (1e-6, 3e-6, 1e-5)[number % 3], "kl_coef": (0.01, 0.05)[number % 2], "seed": number}
        name = f"grpo-math-lr{config['learning_rate']:g}-beta{config['kl_coef']:g}-seed{number:04}"
        path = folder / f"week{number % 20:02}" / f"{name}_events.jsonl"
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as file:
            for place, row in enumerate(bases[number % len(bases)]):
                row["metrics"]["reward_mean"] += 1e-3  # two runs that are the same would be one
                row["wall_time"] = 1.7e9 + 3600.0 * number + 2.0 * place
                row["model_info"] = {"run_id": name, **({} if place else {"config": config})}
                file.write(encode(row) + b"\n")
        os.utime(path, (now - 600 - 60 * number,) * 2)


def serving(dashboard: Dashboard) -> float:
    """The processor time of the server and its processes."""
    server = psutil.Process(dashboard.pid)
    return sum(sum(one.cpu_times()[:2]) for one in (server, *server.children(recursive=True)))


def new_page(chromium: Any, **options: Any) -> Any:
    page = chromium.new_context(**{"viewport": {"width": 1440, "height": 1100}, **options}).new_page()
    page.set_default_timeout(300_000)
    return page


def measure(folder: Path, runs: int, pictures: Path | None) -> None:
    with Dashboard(folder, port=0) as dashboard, browser() as chromium:
        for visit in ("first visit, the server has just started", "another visit"):
            page = new_page(chromium)
            begun, worked, served = time.monotonic(), cpu(), serving(dashboard)
            page.goto(dashboard.url, wait_until="commit")
            page.wait_for_function(SEEN, polling=20)
            seen = time.monotonic() - begun
            page.wait_for_selector(TABLE)
            page.wait_for_selector(f"[data-rldk=count][data-runs='{runs}']")
            usable = time.monotonic() - begun
            used = f"browser {cpu() - worked:.1f} s cpu, server {serving(dashboard) - served:.1f} s cpu"
            say(f"the table of {runs} runs is there, {visit}", f"{seen:.2f} s", verdict(seen, 3.0))
            say("  the table to work with", f"{usable:.2f} s", f"{verdict(usable, 5.0)} ({used})")
            if visit != "another visit":
                page.context.close()
        measure_filter(page, dashboard, runs)
        measure_overlay(page, dashboard)
        if pictures is not None:
            paint(chromium, page.url, pictures)


def measure_filter(page: Any, dashboard: Dashboard, runs: int) -> None:
    page.wait_for_timeout(3000)
    third = sum(number % 3 == 2 for number in range(runs))
    for what, pattern, found in (("one run", "seed0007$|seed0007 ", 1), ("a third", "lr1e-05", third), ("all again", "", runs)):
        box = page.get_by_label("Search", exact=True).first
        box.fill(pattern)
        served, begun = serving(dashboard), time.monotonic()
        box.press("Enter")
        page.wait_for_selector(f"[data-rldk=count][data-runs='{found}']")
        took = time.monotonic() - begun
        used = f"server {serving(dashboard) - served:.2f} s cpu"
        say(f"filtering by a regular expression: {what}", f"{took:.2f} s", f"{verdict(took, 0.5)} ({used})")
        page.wait_for_timeout(1500)


def measure_overlay(page: Any, dashboard: Dashboard) -> None:
    """Twenty runs that nobody has looked at: all that a search finds, by the box in the head of the table."""
    box = page.get_by_label("Search", exact=True).first
    box.fill("seed00[01][0-9]")
    box.press("Enter")
    page.wait_for_timeout(3000)
    canvas = page.locator(TABLE).first.bounding_box()
    worked, served, begun = cpu(), serving(dashboard), time.monotonic()
    page.mouse.click(canvas["x"] + EDGE, canvas["y"] + ROW / 2)
    page.wait_for_function(f"() => {LEGEND} === 20 && {PLOTS}.length >= 2 && {PLOTS}[0]._fullData.length >= 20", polling=20)
    took = time.monotonic() - begun
    count = page.evaluate(f"() => {LEGEND}")
    used = f"browser {cpu() - worked:.1f} s cpu, server {serving(dashboard) - served:.1f} s cpu"
    say(f"{count} runs selected: the first curves of all are drawn", f"{took:.2f} s", f"{verdict(took, 2.0)} ({used})")
    page.wait_for_selector(DRAWN, state="attached")
    say("  all plots in view", f"{time.monotonic() - begun:.2f} s")


def paint(chromium: Any, address: str, pictures: Path) -> None:
    pictures.mkdir(parents=True, exist_ok=True)
    wide, phone = {"viewport": {"width": 1440, "height": 1100}}, {"viewport": {"width": 390, "height": 844}, "is_mobile": True}
    for name, options in {"wide": wide, "phone": {**phone, "has_touch": True}}.items():
        for scheme in ("light", "dark"):
            page = new_page(chromium, color_scheme=scheme, **options)
            page.goto(address, wait_until="commit")
            page.wait_for_selector(TABLE)
            page.wait_for_selector(DRAWN, state="attached")
            page.wait_for_timeout(1500)
            page.screenshot(path=pictures / f"{name}-{scheme}.png")
            page.locator(".rldk-legend").scroll_into_view_if_needed()
            page.locator(".js-plotly-plot").nth(1).scroll_into_view_if_needed()
            page.wait_for_timeout(1500)
            page.screenshot(path=pictures / f"{name}-{scheme}-curves.png")
            page.context.close()
    print(f"  pictures in {pictures}")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--pictures", type=Path, help="where to put pictures of the page")
    parser.add_argument("--folder", type=Path, help="where the runs are, or are written to and kept")
    args = parser.parse_args(argv)
    if shutil.which("chromium") is None:
        print("The table of runs is not measured: there is no chromium (make chromium).")
        return 0
    with tempfile.TemporaryDirectory() as place:
        folder = args.folder or Path(place)
        if not (folder / ".rldk" / "index.parquet").exists():
            folder.mkdir(parents=True, exist_ok=True)
            write_runs(folder, args.runs, args.rows)
            subprocess.run([sys.executable, "-m", "rldk", "index", str(folder)], check=True, stdout=subprocess.DEVNULL)
        load = psutil.getloadavg()[0]
        print(f"The table of {args.runs} runs of {args.rows} rows; {psutil.cpu_count()} processors, load {load:.1f}")
        measure(folder, args.runs, args.pictures)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
