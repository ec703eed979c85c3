"""Hostile inputs: time and peak memory of reading and judging each. None may take ten seconds or a gigabyte.

    python benchmarks/hostile/run.py [NAME …] [--share 0.01]

Each is scanned in a process of its own. Time is processor time, memory the highest of the process (`VmHWM`), interpreter and
libraries included. `--share` makes the inputs smaller, to see that it runs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hostile.stores import STORES
from hostile.texts import TEXTS
from report import Report, Row

INPUTS = {maker.__name__: maker for maker in (*TEXTS, *STORES)}
MAX_SECONDS, MAX_MEGABYTES = 10.0, 1024

_SCAN = """
import io, json, resource, signal, sys
from contextlib import redirect_stderr, redirect_stdout
from rldk.cli.main import main

resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[2]), int(sys.argv[2])))
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
said, errors, runs = io.StringIO(), io.StringIO(), []
with redirect_stdout(said), redirect_stderr(errors):
    try:
        status = main(["scan", sys.argv[1], "--json", "--jobs", "1"])
    except SystemExit as end:
        status = end.code
    except MemoryError:
        status = "out of memory"
if said.getvalue():
    runs = json.loads(said.getvalue()).get("runs", [])
used = resource.getrusage(resource.RUSAGE_SELF)
memory = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
notes = [note for run in runs[:1] for note in run.get("notes", [])] or [errors.getvalue().strip()]
print(json.dumps([used.ru_utime + used.ru_stime, int(memory) >> 10, status, sum(run["events"] for run in runs), notes]))
"""


def measure(path: Path, seconds: float = 3 * MAX_SECONDS) -> tuple[float, int, object, int, list[str]]:
    """Processor time, megabytes, exit status, events and notes of a scan; one that takes too long is ended."""
    command = [sys.executable, "-c", _SCAN, str(path), str(int(seconds))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return seconds, 0, f"ended by {done.returncode}", 0, [done.stderr[-300:]]
    took, memory, status, events, notes = json.loads(done.stdout)
    return took, memory, status, events, notes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="which inputs; all by default")
    parser.add_argument("--share", type=float, default=1.0, help="a share of the full sizes")
    parser.add_argument("--notes", action="store_true", help="also print what the scan says of each")
    given = parser.parse_args()
    if unknown := set(given.names) - set(INPUTS):
        parser.error(f"no input {', '.join(sorted(unknown))}; there are {', '.join(INPUTS)}")
    report = Report(judging=given.share >= 1.0)
    report.begin("hostile inputs: processor time and peak memory of a scan")
    for name in given.names or INPUTS:
        with tempfile.TemporaryDirectory(prefix="rldk-hostile-") as folder:
            path = INPUTS[name](Path(folder), given.share)
            size = sum(one.stat().st_size for one in Path(folder).rglob("*") if one.is_file())
            took, memory, status, events, notes = measure(path)
        holds = took <= MAX_SECONDS and memory <= MAX_MEGABYTES and status in (0, 1, 2)
        said = f"{took:.1f} s, {memory} MB"
        report.add(Row(f"{name.replace('_', ' ')} ({size / 1e6:.0f} MB)", said, f"status {status}, {events:,} events", holds))
        if given.notes:
            print("".join(f"      {note[:200]}\n" for note in notes[:6]), end="")
    report.finish()


if __name__ == "__main__":
    main()
