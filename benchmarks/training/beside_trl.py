"""PPO beside TRL's PPOTrainer: the same model, prompts, reward and hyperparameters, each in a process of its own, in turns.

    python benchmarks/training/beside_trl.py            three seeds each, as `make bench` does
    python benchmarks/training/beside_trl.py --quick    a few updates, to see that it runs; the numbers mean nothing

One thread each, and speed by CPU second, so that what else the machine does matters less. TRL is measured as it is, and
after `gc.freeze()`: it collects garbage twice an update, which that makes cheap.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import world  # noqa: E402

from report import Report, Row  # noqa: E402

SETTINGS = {"threads": 1, "batch": 8, "response": 48, "epochs": 4, "lr": 3e-3, "kl_coef": 0.05, "warmup": 3, "freeze": True}


def child(script: str, folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, str(HERE / script), str(folder), json.dumps(settings)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"{script} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def speed(found: dict[str, Any]) -> float:
    return found["tokens"] / found["cpu"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few updates of one seed")
    parser.add_argument("--updates", type=int, default=80, help="updates of each run")
    args = parser.parse_args()
    seeds, updates, slow = (1, 6, 5) if args.quick else (3, args.updates, 10)
    report = Report(judging=not args.quick)
    report.begin(f"PPO beside TRL: {updates} updates of {SETTINGS['batch']} responses of up to {SETTINGS['response']} tokens")
    ours, theirs, as_is = [], [], []
    for seed in range(seeds):
        with tempfile.TemporaryDirectory(prefix="rldk-bench-") as made:
            folder = world.build(Path(made), seed)
            settings = {**SETTINGS, "seed": seed, "updates": updates}
            ours.append(child("ours.py", folder, settings))
            theirs.append(child("peer_trl.py", folder, settings))
            as_is.append(child("peer_trl.py", folder, {**settings, "freeze": False, "updates": slow}))
        last = [statistics.mean(runs[-1]["rewards"][-10:]) for runs in (ours, theirs)]
        begin = statistics.mean(ours[-1]["rewards"][:3])
        report.add(Row(f"seed {seed}: reward at the end, ours / TRL", f"{last[0]:.3f} / {last[1]:.3f} (from {begin:.2f})"))
    ends = [[statistics.mean(run["rewards"][-10:]) for run in runs] for runs in (ours, theirs)]
    mean = [statistics.mean(values) for values in ends]
    spread = max(statistics.pstdev(values) for values in ends) if seeds > 1 else 0.0
    near = mean[0] >= mean[1] - max(2 * spread, 0.03)
    report.add(
        Row("reward at the end, mean of the seeds, ours / TRL", f"{mean[0]:.3f} / {mean[1]:.3f}", "the same, or better", near)
    )
    fast = [statistics.median(map(speed, runs)) for runs in (ours, theirs, as_is)]
    for name, peer in (("TRL after gc.freeze()", fast[1]), ("TRL as it is", fast[2])):
        ratio = fast[0] / peer
        report.add(
            Row(f"tokens a CPU second beside {name}", f"{fast[0]:.0f} / {peer:.0f} = {ratio:.2f} x", ">= 1.5 x", ratio >= 1.5)
        )
    cost = statistics.median(run["watching"] for run in ours)
    report.add(Row("event log and monitor, of a step", f"{cost:.2%}", "<= 2 %", cost <= 0.02))
    report.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
