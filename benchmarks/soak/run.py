"""Soak and faults: does anything that goes wrong around a monitored training reach it, or cost an acknowledged event?

    python benchmarks/soak/run.py [--minutes 60] [--seed 0] [--parts writers events files trainings] [--json FILE]

Four parts take turns until the time is over; each is a process of its own that can be run alone.

- writers: a process writes an event log and is killed at a random moment; now and then its disk is full (a limit on the size of
  files), or its folder is deleted meanwhile. Every event that it acknowledged must be in the log.
- events: one monitor after another takes random bad events, with outputs that fail, sleep and raise, on full disks and in deleted
  folders. Nothing may raise, no thread may stay, and memory must stay flat.
- files: hostile files and folders are read and judged in a process with a limit of 1 GB and 10 seconds.
- trainings: real PPO trainings of TRL with a callback. Faults are raised in every function of rldk that runs, one at a time;
  other trainings are killed. The weights must be bit-identical to those of a training without a callback.

The exit status is 1 if a promise was broken. The counts of several runs may be added up.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PARTS = {"writers": 0.15, "events": 0.15, "files": 0.25, "trainings": 0.45}
"""The parts, each with its share of the time."""
TOLERATED = 0.05


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--json", type=Path, help="add the counts to this file")
    given = parser.parse_args()
    total: dict[str, Any] = {}
    began = time.monotonic()
    shares = sum(PARTS[name] for name in given.parts)
    for name in given.parts:
        seconds = 60.0 * given.minutes * PARTS[name] / shares
        print(f"{name}: {seconds:.0f} s", flush=True)
        total = added(total, run_part(name, seconds, given.seed))
    total["seconds"] = time.monotonic() - began
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        earlier = json.loads(given.json.read_text()) if given.json.exists() else {}
        total = added(earlier, total)
        given.json.write_text(json.dumps(total, indent=1) + "\n")
    broken = show(total)
    return 1 if broken else 0


def run_part(name: str, seconds: float, seed: int) -> dict[str, Any]:
    """The counts of one part, run in a process of its own."""
    command = [sys.executable, str(HERE / f"{name}.py"), str(seconds), str(seed)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    try:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    except (IndexError, ValueError):
        return {"broken": [f"the part {name} ended with status {done.returncode} and no counts"]}


def added(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Counts add up, lists grow, and of what is a maximum the larger one counts."""
    made = dict(one)
    for name, value in other.items():
        if isinstance(value, list):
            made[name] = [*made.get(name, []), *value][:100]
        else:
            made[name] = max(made.get(name, 0), value) if name.startswith("most_") else made.get(name, 0) + value
    return made


def show(total: dict[str, Any]) -> list[str]:
    """Print the table; returns what was broken."""
    broken = list(total.pop("broken", []))
    growth = total.get("most_memory_growth", 0.0)
    if growth > TOLERATED:
        broken.append(f"memory grew by {100 * growth:.1f} % after ten minutes, or half of a shorter time")
    for name, value in total.items():
        if not isinstance(value, list):
            shown = f"{value:,.3f}" if isinstance(value, float) else f"{value:,}"
            print(f"{name.replace('_', ' '):48} {shown:>14}")
    print(f"{'promises broken':48} {len(broken):>14}")
    for what in broken:
        print(f"  {what}")
    return broken


if __name__ == "__main__":
    raise SystemExit(main())
