"""PPO and GRPO beside TRL's trainers: the same model, prompts, reward and settings, each in a process of its own, in turns.

    python benchmarks/training/beside_trl.py            three seeds each, as `make bench` does
    python benchmarks/training/beside_trl.py --quick    a few updates, to see that it runs; the numbers mean nothing
    python benchmarks/training/beside_trl.py --only speed --size 14      # of models of 14 million parameters

PPO is compared with the TRL of the development environment (1.12), the last with a PPOTrainer, and GRPO with 1.16 of
`.venvs/trl-1.16.0`. How well GRPO learns beside TRL's is in arithmetic.py.

Learning is judged after 100 updates. By then all runs have found that short answers are easily good, which happens around
the 60th update and raises the reward from 0.7 to 0.9; before that, a mean of three seeds depends on luck. Much later says
less too: where every answer scores 1, whitened advantages are noise, and since TRL neither clips gradients nor ends epochs
by their KL, neither does the other here, and a run may fall back. That both take the same step
from the same rollouts is a test: tests/trainer/test_ppo_same_as_trl.py.

Speed is judged in the first updates, where answers are as long as they may be and both write as many tokens, in shapes that
weigh updates and generation differently. One thread each, and by CPU second, so that what else the machine does matters less.
It still matters: a core that is shared does less in its second. So ours and TRL's run in turns, the speed of a run is the
median of its updates', and the ratio is the median over pairs of neighbouring runs, shown with the smallest and the largest.
TRL is measured after `gc.freeze()`, which makes its two garbage collections per update cheap; without it TRL is several times
slower.
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
SPEED = {**BOTH, "updates": 10, "lr": 1e-5}  # too small a rate for answers to become shorter, whatever the size of the model
GRPO = {**SPEED, "epochs": 1, "generations": 8, "grad_clip": 1.0, "reward": "world:reward"}
TRL_116 = HERE.parents[1] / ".venvs/trl-1.16.0/bin/python"
SIZES = {"0.4": (96, 3), "2": (224, 3), "14": (480, 5)}  # hidden size and layers, by million parameters
SHAPES = (("0.4", 32, 24), ("0.4", 8, 48), ("2", 8, 24), ("14", 8, 24))  # size, responses, tokens of each


def child(script: str, folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    python = str(TRL_116) if script == "peer_grpo.py" else sys.executable
    command = [python, str(HERE / script), str(folder), json.dumps(settings)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"{script} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


Pairs = list[tuple[dict[str, Any], dict[str, Any]]]


def in_turns(folder: Path, settings: dict[str, Any], seeds: int, rounds: int, peer: str = "peer_trl.py") -> Pairs:
    """Runs of ours, each with one of TRL's right after it."""
    every = [{**settings, "seed": seed} for _ in range(rounds) for seed in range(seeds)]
    return [(child("ours.py", folder, one), child(peer, folder, one)) for one in every]


def compared(name: str, pairs: Pairs) -> Row:
    """One row of tokens per CPU second, ours and TRL's."""
    speeds = [[statistics.median(run["speeds"]) for run in pair] for pair in pairs]
    ours, theirs = (statistics.median(values) for values in zip(*speeds, strict=True))
    ratios = sorted(mine / peer for mine, peer in speeds)
    ratio = statistics.median(ratios)
    shown = f"{ours:.0f} / {theirs:.0f} = {ratio:.2f} x ({ratios[0]:.2f} to {ratios[-1]:.2f})"
    return Row(name, shown, ">= 0.95 x", ratio >= 0.95)


def learning(report: Report, seeds: int, updates: int) -> list[dict[str, Any]]:
    """The reward at the end, seed by seed and in the mean; our runs."""
    ours, theirs = [], []
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
    return ours


def speeds(report: Report, sizes: list[str], seeds: int, rounds: int) -> list[dict[str, Any]]:
    """Tokens per CPU second in each shape; our runs."""
    ours = []
    report.begin("PPO beside TRL after gc.freeze(), speed: tokens per CPU second in the first updates")
    for size, batch, response in (shape for shape in SHAPES if shape[0] in sizes):
        with tempfile.TemporaryDirectory(prefix="rldk-bench-") as made:
            folder = world.build(Path(made), 0, *SIZES[size])
            settings = {**SPEED, "batch": batch, "response": response}
            pairs = in_turns(folder, settings, seeds, rounds)
            ours += [pair[0] for pair in pairs]
            name = f"{size} M parameters, {batch} x {response} tokens"
            report.add(compared(name, pairs))
            if response == 48:
                as_it_is = child("peer_trl.py", folder, {**settings, "seed": 0, "freeze": False})
                report.add(compared(f"{name}; TRL as it is", [(pairs[0][0], as_it_is)]))
    return ours


def grpo_speeds(report: Report, sizes: list[str], seeds: int, rounds: int) -> None:
    """The same for GRPO: eight responses to each prompt."""
    report.begin("GRPO beside TRL 1.16 after gc.freeze(), speed: tokens per CPU second in the first updates")
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="rldk-bench-") as made:
            folder = world.build(Path(made), 0, *SIZES[size])
            settings = {**GRPO, "batch": 16, "response": 24}
            pairs = in_turns(folder, settings, seeds, rounds, "peer_grpo.py")
            report.add(compared(f"{size} M parameters, 16 x 24 tokens", pairs))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few updates of one seed")
    parser.add_argument("--updates", type=int, default=100, help="updates of each run that learns")
    parser.add_argument("--only", choices=("learning", "speed"), help="one of the two parts")
    parser.add_argument("--size", choices=SIZES, help="speed at one size alone, in million parameters")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of each comparison")
    args = parser.parse_args()
    seeds, rounds, updates = (1, 1, 6) if args.quick else (args.seeds, 2, args.updates)
    report = Report(judging=not args.quick)
    ours = learning(report, seeds, updates) if args.only != "speed" else []
    sizes = [args.size] if args.size else list(SIZES)
    ours += speeds(report, sizes, seeds, rounds) if args.only != "learning" else []
    if args.only != "learning" and TRL_116.is_file():
        grpo_speeds(report, sizes, seeds, rounds)
    cost = statistics.median(run["watching"] for run in ours)
    report.add(Row("event log and monitor, of a step", f"{cost:.2%}", "<= 2 %", cost <= 0.02))
    report.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
