"""What `--compile` and `--attention` bring on this machine: PPO and GRPO with each of them beside the same run without.

    python benchmarks/training/flags.py                 three seeds at each size
    python benchmarks/training/flags.py --size 14       models of 14 million parameters alone
    python benchmarks/training/flags.py --quick         a few updates, to see that it runs; the numbers mean nothing

One thread each, in turns, by tokens per CPU second as in beside_trl.py. What compiling takes is in the first updates, which the
speed leaves out: the last column has the number of updates after which a run has gained it back.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import world  # noqa: E402
from beside_trl import GRPO, SIZES, SPEED, child  # noqa: E402

from report import Report, Row  # noqa: E402

FLAGS = {"--attention eager": ["--attention=eager"], "--compile": ["--compile"]}
SHAPES = {"PPO": {**SPEED, "batch": 8, "response": 24}, "GRPO": {**GRPO, "batch": 16, "response": 24}}


def compared(name: str, pairs: list[tuple[dict[str, Any], dict[str, Any]]]) -> Row:
    """The speed with a flag over the speed without, and what the first updates took more."""
    ratios = sorted(statistics.median(one["speeds"]) / statistics.median(plain["speeds"]) for plain, one in pairs)
    more = statistics.median(one["first"] - plain["first"] for plain, one in pairs)
    saved = statistics.median(plain["cpu"] - one["cpu"] for plain, one in pairs)
    pays = f"pays after {more / saved:.0f} updates" if saved > 0 and more > 1 else ""
    shown = f"{statistics.median(ratios):.2f} x ({ratios[0]:.2f} to {ratios[-1]:.2f}), {more:+.0f} s at first"
    return Row(name, shown, pays)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few updates of one seed")
    parser.add_argument("--size", choices=SIZES, help="one size alone, in million parameters")
    parser.add_argument("--seeds", type=int, default=3, help="pairs of runs")
    parser.add_argument("--updates", type=int, default=SPEED["updates"], help="updates of each run")
    parser.add_argument("--only", choices=SHAPES, help="one of the two")
    args = parser.parse_args()
    seeds, updates = (1, 5) if args.quick else (args.seeds, args.updates)
    os.environ |= {"TORCHINDUCTOR_COMPILE_THREADS": "1", "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}  # nothing is kept
    report = Report(judging=False)
    report.begin("tokens per CPU second with a flag, over the same without; and CPU seconds of the first updates")
    for size in [args.size] if args.size else SIZES:
        with tempfile.TemporaryDirectory(prefix="rldk-bench-") as made:
            folder = world.build(Path(made), 0, *SIZES[size])
            for shape, settings in ((name, found) for name, found in SHAPES.items() if args.only in (None, name)):
                for name, words in FLAGS.items():
                    every = [{**settings, "updates": updates, "seed": seed} for seed in range(seeds)]
                    pairs = [(child("ours.py", folder, one), child("ours.py", folder, {**one, "flags": words})) for one in every]
                    report.add(compared(f"{shape}, {size} M parameters: {name}", pairs))
    report.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
