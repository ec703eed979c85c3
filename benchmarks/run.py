"""Speed and memory beside the peers: every number measured in this run, beside the bar it has to hold.

    python benchmarks/run.py            all sections, as `make bench` does
    python benchmarks/run.py ingest     some of them
    python benchmarks/run.py --quick    tiny sizes, to see that it runs; the numbers mean nothing
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from pathlib import Path

from report import Report, Sizes

SECTIONS: dict[str, str] = {
    "ingest": "reading a log of events into a frame",
    "writer": "writing an event",
    "imports": "starting",
    "adapters": "reading each format",
    "checkpoints": "comparing two checkpoints",
    "notifications": "notifications that cannot be delivered",
}
"""Every section and what it measures; its code is in `speed/<name>.py`, in a function `measure`."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"which to run: {', '.join(SECTIONS)}")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    args = parser.parse_args()
    if unknown := set(args.sections) - set(SECTIONS):
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    sizes = Sizes.quick() if args.quick else Sizes()
    report = Report(judging=not args.quick)
    with tempfile.TemporaryDirectory(prefix="rldk-bench-") as folder:
        for name, title in SECTIONS.items():
            if not args.sections or name in args.sections:
                report.begin(title)
                for row in importlib.import_module(f"speed.{name}").measure(Path(folder), sizes):
                    report.add(row)
    report.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
