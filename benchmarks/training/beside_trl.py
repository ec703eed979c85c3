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

BOTH = {"threads": 1, "epochs": 4, "lr": 3e-3, "kl_coef": 0.02, "warmup": 3, "freeze": True}
LEARNING = {**BOTH, "batch": 32, "response": 24}
SPEED = {**BOTH, "batch": 8, "response": 48, "updates": 16}


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
    parser.add_argument("--updates", type=int, default=100, help="updates of each run")
    args = parser.parse_args()
    seeds, updates = (1, 6) if args.quick else (3, args.updates)
    report = Report(judging=not args.quick)
    ours, theirs, fast = [], [], []
    report.begin(f"PPO beside TRL, learning: {updates} updates of 32 responses of up to 24 tokens")
    for seed in range(seeds):
        with tempfile.TemporaryDirectory(prefix="rldk-bench-") as made:
            folder = world.build(Path(made), seed)
            settings = {**LEARNING, "seed": seed, "updates": updates}
            ours.append(child("ours.py", folder, settings))
            theirs.append(child("peer_trl.py", folder, settings))
        last = [statistics.mean(runs[-1]["rewards"][-5:]) for runs in (ours, theirs)]
        begin = statistics.mean(ours[-1]["rewards"][:2])
        report.add(Row(f"seed {seed}: reward at the end, ours / TRL", f"{last[0]:.3f} / {last[1]:.3f} (from {begin:.2f})"))
    ends = [[statistics.mean(run["rewards"][-5:]) for run in runs] for runs in (ours, theirs)]
    mean = [statistics.mean(values) for values in ends]
    spread = max(statistics.pstdev(values) for values in ends)
    same = mean[0] >= mean[1] - max(2 * spread, 0.03)
    report.add(Row("mean of the seeds, ours / TRL", f"{mean[0]:.3f} / {mean[1]:.3f}", "the same, or better", same))
    wide = [statistics.median(map(speed, runs)) for runs in (ours, theirs)]
    ratio = f"{wide[0]:.0f} / {wide[1]:.0f} = {wide[0] / wide[1]:.2f} x"
    report.add(Row("tokens a CPU second, TRL after gc.freeze()", ratio, "no bar: the updates weigh most"))

    report.begin("PPO beside TRL, speed: updates of 8 responses of up to 48 tokens")
    with tempfile.TemporaryDirectory(prefix="rldk-bench-") as made:
        folder = world.build(Path(made), 0)
        for seed in range(seeds):
            settings = {**SPEED, "seed": seed}
            kinds = (("ours.py", True), ("peer_trl.py", True), ("peer_trl.py", False))
            fast.append([child(script, folder, {**settings, "freeze": freeze}) for script, freeze in kinds])
    mine, *peers = ([speed(turn[kind]) for turn in fast] for kind in range(3))
    for name, peer in zip(("TRL after gc.freeze()", "TRL as it is"), peers, strict=True):
        ratio = statistics.median(a / b for a, b in zip(mine, peer, strict=True))
        numbers = f"{statistics.median(mine):.0f} / {statistics.median(peer):.0f} = {ratio:.2f} x"
        report.add(Row(f"tokens a CPU second beside {name}", numbers, ">= 1.5 x", ratio >= 1.5))
    ours += [turn[0] for turn in fast]
    cost = statistics.median(run["watching"] for run in ours)
    report.add(Row("event log and monitor, of a step", f"{cost:.2%}", "<= 2 %", cost <= 0.02))
    report.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
