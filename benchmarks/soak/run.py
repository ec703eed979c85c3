"""Soak and faults: does anything that goes wrong around a monitored training reach it, or cost an acknowledged event?

    python benchmarks/soak/run.py [--minutes 60] [--seed N] [--parts writers events files faults kills] [--results FILE]

Five parts, two at a time; each is a process of its own that can be run alone.

- faults: real PPO trainings of TRL with a callback. Errors are raised in every function of rldk that runs, one at a time. The
  weights must be bit-identical to those of a training without a callback, and no thread, process or file may be left over.
- kills: such trainings are killed. Every event that they had acknowledged must be in the log.
- writers: a process writes an event log and is killed at a random moment; now and then its disk is full (a limit on the size of
  files), or its folder is deleted meanwhile. Every event that it acknowledged must be in the log.
- events: one monitor after another takes random bad events, with outputs that fail, sleep and raise, on full disks and in deleted
  folders. Nothing may raise, no thread may stay, and memory must stay flat.
- files: hostile files and folders are read and judged, each within 10 seconds of processor time and 1 GB of memory.

Each run is added to the results file with the seed it had; the table at the end adds up all of them. Delete the file to begin
again. The exit status is 1 if a promise was broken in this run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from verdicts import table, total_of

from rldk.core.files import write_json

HERE = Path(__file__).resolve().parent
LANES = ({"faults": 0.7, "kills": 0.3}, {"events": 0.3, "writers": 0.15, "files": 0.55})
"""The parts that take turns, each with its share of the time. The lanes run side by side."""


def main() -> int:
    parts = [name for lane in LANES for name in lane]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, help="by default another one in each run that is added to the results")
    parser.add_argument("--parts", nargs="*", default=parts, choices=parts)
    parser.add_argument("--results", type=Path, help="add this run to the file, and show the total of all runs in it")
    given = parser.parse_args()
    earlier = read_results(given.results)
    seed = len(earlier) if given.seed is None else given.seed
    print(f"soak with seed {seed}, {given.minutes:g} minutes, {len(earlier)} earlier runs", flush=True)
    run = {"seed": seed, "commit": commit(), **soak(given.minutes, seed, given.parts)}
    runs = [*read_results(given.results), run]  # another soak may have ended meanwhile
    if given.results is not None:
        write_json(given.results, runs)
    for line in table(total_of(runs)):
        print(line)
    return 1 if run["broken"] else 0


def read_results(path: Path | None) -> list[dict[str, Any]]:
    """The runs that a file holds so far."""
    return list(json.loads(path.read_text())) if path is not None and path.exists() else []


def soak(minutes: float, seed: int, parts: list[str]) -> dict[str, Any]:
    """What all parts counted in a run of so many minutes."""
    began = time.monotonic()
    found: list[dict[str, Any]] = []

    def work(lane: dict[str, float]) -> None:
        for name, share in lane.items():
            seconds = 60.0 * minutes * share / sum(lane.values())
            found.append(run_part(name, seconds, seed))
            print(f"{name}: {seconds:.0f} s, {len(found[-1]['broken'])} promises broken", flush=True)

    lanes = [{name: share for name, share in lane.items() if name in parts} for lane in LANES]
    threads = [threading.Thread(target=work, args=(lane,)) for lane in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {**total_of(found), "seconds": round(time.monotonic() - began, 1)}


def run_part(name: str, seconds: float, seed: int) -> dict[str, Any]:
    """The counts of one part, run in a process of its own: its last line, so that a crash costs none of them."""
    command = [sys.executable, str(HERE / f"{name}.py"), str(seconds), str(seed)]
    found: dict[str, Any] = {"broken": []}
    told = False
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("{"):
                known, found, told = len(found["broken"]), json.loads(line), True
                for what in found["broken"][known:]:
                    print(f"{name}: {what}", flush=True)
    if process.returncode or not told:
        found["broken"].append(f"the part {name} ended with status {process.returncode}")
    return found


def commit() -> str:
    """The commit that is tested."""
    command = ["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    raise SystemExit(main())
