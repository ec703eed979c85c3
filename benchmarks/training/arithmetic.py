"""GRPO on sums, by our trainer and by TRL 1.16, from the same weights with the same budget: the accuracy on held-out problems.

    python benchmarks/training/arithmetic.py                 three seeds, 200 updates of 128 responses
    python benchmarks/training/arithmetic.py --quick         a few updates of one seed, to see that it runs
    python benchmarks/training/arithmetic.py --json FILE     also write the figures

For each seed a model is taught by supervision until a third of its answers are right. Both trainers continue from these weights
with the same prompts, reward, learning rate, group size, KL weight and gradient clip, in processes of their own. Judged is the
mean of the paired differences (ours less TRL's) in the share of right answers, sampled at temperature 1, with its 95 % interval
by Student's t: the interval must not lie below 0. That both take the same step from the same rollouts is a test:
tests/trainer/test_grpo_same_as_trl.py.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import arithmetic_world  # noqa: E402

from report import Report, Row  # noqa: E402

TRL = HERE.parents[1] / ".venvs/trl-1.16.0/bin/python"
SETTINGS = {
    "threads": 1, "epochs": 1, "lr": 1e-4, "kl_coef": 0.01, "warmup": 1, "freeze": True, "batch": 128, "generations": 8,
    "response": arithmetic_world.RESPONSE, "grad_clip": 1.0,
}  # fmt: skip
T_95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}


def child(python: Path | str, script: str, folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    command = [str(python), str(HERE / script), str(folder), json.dumps(settings)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"{script} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def compare(seed: int, updates: int) -> dict[str, Any]:
    """Accuracies at the start, after ours and after TRL's."""
    with tempfile.TemporaryDirectory(prefix="rldk-bench-") as made:
        folder = arithmetic_world.build(Path(made), seed)
        found: dict[str, Any] = {"seed": seed, "start": arithmetic_world.accuracy(folder / "model", seed)}
        settings = {**SETTINGS, "seed": seed, "updates": updates}
        ours = {**settings, "reward": "verifiable_rewards:number", "save": str(folder / "ours")}
        theirs = {**settings, "reward": "arithmetic_world:reward", "save": str(folder / "trl")}
        runs = {"ours": child(sys.executable, "ours.py", folder, ours), "trl": child(TRL, "peer_grpo.py", folder, theirs)}
        for name, place in (("ours", folder / "ours/ppo"), ("trl", folder / "trl")):
            speed = runs[name]["tokens"] / runs[name]["cpu"]
            found[name] = arithmetic_world.accuracy(place, seed) | {"tokens_per_cpu_second": speed}
    return found


def interval(differences: list[float]) -> tuple[float, float, float]:
    """Mean of paired differences, and the ends of its 95 % interval."""
    mean = statistics.mean(differences)
    if len(differences) < 2:
        return mean, -math.inf, math.inf
    half = T_95[len(differences) - 1] * statistics.stdev(differences) / math.sqrt(len(differences))
    return mean, mean - half, mean + half


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few updates of one seed; the numbers mean nothing")
    parser.add_argument("--seeds", type=int, default=3, choices=range(2, 11), help="number of pairs of runs")
    parser.add_argument("--updates", type=int, default=200, help="updates of each run")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    args = parser.parse_args()
    if not TRL.is_file():
        parser.error(f"no {TRL}: `make test` creates it")
    seeds, updates = (1, 4) if args.quick else (args.seeds, args.updates)
    report = Report(judging=not args.quick)
    shape = f"{updates} updates of {SETTINGS['batch']} responses, {SETTINGS['generations']} per prompt"
    report.begin(f"GRPO on sums beside TRL 1.16: {shape}")
    runs = []
    for seed in range(seeds):
        runs.append(one := compare(seed, updates))
        shown = f"{one['ours']['sampled']:.3f} / {one['trl']['sampled']:.3f} (from {one['start']['sampled']:.2f})"
        report.add(Row(f"seed {seed}: held-out accuracy, ours / TRL", shown))
    for name, bar in (("sampled", "interval reaches 0"), ("greedy", "")):
        mean, low, high = interval([one["ours"][name] - one["trl"][name] for one in runs])
        shown = f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"
        report.add(Row(f"difference, {name} answers: mean and 95 % interval", shown, bar, high >= 0 if bar else None))
    report.finish()
    if args.json:
        args.json.write_text(json.dumps(runs, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
