"""PPO and GRPO beside TRL's trainers: the same model, prompts, reward and settings, each in a process of its own, in turns.

    python benchmarks/training/beside_trl.py            three seeds each, as `make bench` does
    python benchmarks/training/beside_trl.py --quick    a few updates, to see that it runs; the numbers mean nothing
    python benchmarks/training/beside_trl.py --only speed

PPO is compared with the TRL of the development environment (1.12), the last with a PPOTrainer, and GRPO with 1.16 of
`.venvs/trl-1.16.0`. How well GRPO learns beside TRL's is in arithmetic.py.

Learning is judged after 100 updates. By then all runs have found that short answers are easily good, which happens around
the 60th update and raises the reward from 0.7 to 0.9; before that, a mean of three seeds depends on luck. Much later says
less too: where every answer scores 1, whitened advantages are noise, and since TRL neither clips gradients nor ends epochs
by their KL, neither does the other here, and a run may fall back. That both take the same step
from the same rollouts is a test: tests/trainer/test_ppo_same_as_trl.py.

Speed is judged in the first updates, where answers are as long as they may be and both write as many tokens, in both
shapes: that of learning, where the updates weigh most, and a smaller batch of longer answers. One thread each, and by CPU
second, so that what else the machine does matters less. It still matters: a core that is shared does less in its second.
So each seed is run twice by both, in turns, and of both the faster run counts. TRL is measured after `gc.freeze()`, which
makes its two garbage collections per update cheap; without it TRL is several times slower.
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
SPEED = {**BOTH, "updates": 16}
GRPO = {**SPEED, "epochs": 1, "generations": 8, "grad_clip": 1.0, "reward": "world:reward"}
TRL_116 = HERE.parents[1] / ".venvs/trl-1.16.0/bin/python"
SHAPES = (((96, 3), 32, 24), ((96, 3), 8, 48), ((224, 3), 8, 24), ((480, 5), 8, 24))  # 0.4, 0.4, 2 and 14 million parameters


def child(script: str, folder: Path, settings: dict[str, Any]) -> dict[str, Any]:
    python = str(TRL_116) if script == "peer_grpo.py" else sys.executable
    command = [python, str(HERE / script), str(folder), json.dumps(settings)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"{script} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def speed(found: dict[str, Any]) -> float:
    return found["tokens"] / found["cpu"]


def in_turns(folder: Path, settings: dict[str, Any], rounds: int, peer: str = "peer_trl.py") -> list[dict[str, Any]]:
    """The fastest of as many runs of ours, and of TRL's."""
    turns = [[child(script, folder, settings) for script in ("ours.py", peer)] for _ in range(rounds)]
    return [max(runs, key=speed) for runs in zip(*turns, strict=True)]


def compared(name: str, pairs: list[tuple[float, float]]) -> Row:
    """One row of speeds, ours and TRL's; the ratio is the middle one of the seeds'."""
    ours, theirs = (statistics.median(values) for values in zip(*pairs, strict=True))
    ratio = statistics.median(mine / peer for mine, peer in pairs)
    return Row(name, f"{ours:.0f} / {theirs:.0f} = {ratio:.2f} x", ">= 0.95 x", ratio >= 0.95)


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


def speeds(report: Report, seeds: int, rounds: int) -> list[dict[str, Any]]:
    """Tokens a CPU second in each shape; our runs."""
    ours = []
    report.begin("PPO beside TRL after gc.freeze(), speed: tokens a CPU second in the first updates")
    for (hidden, layers), batch, response in SHAPES:
        with tempfile.TemporaryDirectory(prefix="rldk-bench-") as made:
            folder = world.build(Path(made), 0, hidden, layers)
            settings = {**SPEED, "batch": batch, "response": response}
            turns = [in_turns(folder, {**settings, "seed": seed}, rounds) for seed in range(seeds)]
            ours += [turn[0] for turn in turns]
            name = f"{batch} x {response} tokens, {layers} layers of {hidden}"
            report.add(compared(name, [(speed(mine), speed(peer)) for mine, peer in turns]))
            if response == 48:
                as_it_is = child("peer_trl.py", folder, {**settings, "seed": 0, "freeze": False})
                report.add(compared(f"{name}; TRL as it is", [(speed(turns[0][0]), speed(as_it_is))]))
    return ours


def grpo_speeds(report: Report, seeds: int, rounds: int) -> None:
    """The same for GRPO: eight responses to each prompt."""
    report.begin("GRPO beside TRL 1.16 after gc.freeze(), speed: tokens a CPU second in the first updates")
    for hidden, layers in ((96, 3), (224, 3), (480, 5)):
        with tempfile.TemporaryDirectory(prefix="rldk-bench-") as made:
            folder = world.build(Path(made), 0, hidden, layers)
            settings = {**GRPO, "batch": 16, "response": 24}
            turns = [in_turns(folder, {**settings, "seed": seed}, rounds, "peer_grpo.py") for seed in range(seeds)]
            pairs = [(speed(mine), speed(peer)) for mine, peer in turns]
            report.add(compared(f"16 x 24 tokens, {layers} layers of {hidden}", pairs))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few updates of one seed")
    parser.add_argument("--updates", type=int, default=100, help="updates of each run that learns")
    parser.add_argument("--only", choices=("learning", "speed"), help="one of the two parts")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of each comparison")
    args = parser.parse_args()
    seeds, rounds, updates = (1, 1, 6) if args.quick else (args.seeds, 2, args.updates)
    report = Report(judging=not args.quick)
    ours = learning(report, seeds, updates) if args.only != "speed" else []
    ours += speeds(report, seeds, rounds) if args.only != "learning" else []
    if args.only != "learning" and TRL_116.is_file():
        grpo_speeds(report, seeds, rounds)
    cost = statistics.median(run["watching"] for run in ours)
    report.add(Row("event log and monitor, of a step", f"{cost:.2%}", "<= 2 %", cost <= 0.02))
    report.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
