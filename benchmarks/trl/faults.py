"""Real faults in real TRL runs: what is caught, as what, and when; and what healthy runs raise.

    python benchmarks/trl/faults.py [ppo|grpo] [--updates 80] [--seeds 3]

Each row is a training of a tiny model on this machine, with `RLDKCallback` attached. The step is that of the first
anomaly of a type that names the fault, and of the first critical one.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import transformers

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integrations"))

import trl_faults  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trainers", nargs="*", default=["ppo", "grpo"])
    parser.add_argument("--updates", type=int, default=80)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--faults", nargs="*", help="only these")
    given = parser.parse_args()
    for name in ("rldk", "trl", "transformers", "accelerate"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    transformers.utils.logging.disable_progress_bar()
    print(_line("trainer", "fault", "seed", "onset", "caught", "as", "critical", "seconds", "all that was raised (! critical)"))
    for trainer in given.trainers:
        for fault in given.faults or trl_faults.FAULTS:
            for seed in range(given.seeds):
                print(_row(trainer, fault, seed, given.updates), flush=True)


def _row(trainer: str, fault: str, seed: int, updates: int) -> str:
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: Any = trl_faults.run(trainer, fault, Path(folder), seed, updates)
    first, critical = found.caught(), found.first_critical()
    raised = ", ".join(f"{one['type']}@{one['step']}{'!' * (one['severity'] == 'critical')}" for one in found.alerts)
    took = f"{time.perf_counter() - began:.1f}"
    caught = (first["step"], first["type"]) if first else ("-", "-")
    return _line(trainer, fault, seed, found.onset or "", *caught, critical["step"] if critical else "-", took, raised)


def _line(*cells: Any) -> str:
    return " ".join(f"{cell!s:{width}}" for cell, width in zip(cells, (7, 16, 4, 5, 6, 24, 8, 7, 0), strict=True))


if __name__ == "__main__":
    main()
