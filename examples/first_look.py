"""Two PPO runs of a small language model, one healthy and one broken on purpose: watched while they train, then judged.

`make demo` runs it. If torch is not installed, or with --simulated, the two runs are simulated streams of metrics.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from rldk.cli.main import main
from rldk.log import EventWriter
from rldk.testing.streams import faulty, healthy

ROOT = Path(__file__).resolve().parents[1]
OUT = Path("out/demo")
WORLD = Path("out/demo_world")  # data, tokenizer, weights and checkpoints; made once
FAULT = "lr=50@20"
NEEDED = ("torch", "transformers", "accelerate")

SFT = "--from_weight none --tokenizer dataset/tokenizer --max_steps 300 --epochs 10 --batch_size 32 --learning_rate 3e-3"
PPO = "--from_weight full_sft --max_steps {steps} --epochs 100 --batch_size 32 --max_new_tokens 24 --reward rewards:helpful"
RATES = "--learning_rate 1e-4 --critic_learning_rate 1e-3 --kl_coef 0.2"
COMMON = "--save_dir . --num_threads 1"  # such a small model gains nothing from a second thread


def train(script: str, flags: str) -> None:
    """Run a script of the trainer in the demo's folder, with its progress on the screen."""
    words = [sys.executable, "-W", "ignore", str(ROOT / "trainer" / script), *flags.split()]
    subprocess.run(words, cwd=WORLD, check=True, env={**os.environ, "TOKENIZERS_PARALLELISM": "false"})


def prepare() -> None:
    """Generate the data and teach a model to answer, unless an earlier demo did."""
    WORLD.mkdir(parents=True, exist_ok=True)
    if not (WORLD / "dataset/tokenizer").exists():
        print("1. A small world of animals, and a tokenizer for it")
        train("generate_corpus.py", "")
        train("train_tokenizer.py", "")
    if not (WORLD / "full_sft/config.json").exists():
        print("\n2. A model of 0.4 million parameters learns to answer questions about it")
        model, data = ROOT / "config/model/tiny.yaml", ROOT / "config/data/posttrain/sft/chats.yaml"
        flags = f"{SFT} --model_config {model} --data_config {data} {COMMON} --log_interval 25"
        train("train_full_sft.py", f"{flags} --eval_reward rewards:helpful --eval_new_tokens 24 --eval_interval 300")


def live(name: str, fault: str, steps: int) -> Path:
    """One PPO run; rldk is attached and says what it sees as it happens."""
    data = ROOT / "config/data/posttrain/rlaif/ppo.yaml"
    flags = f"{PPO.format(steps=steps)} {RATES} --data_config {data} {COMMON} --save_interval 0 --log_interval 5"
    train("train_ppo.py", f"{flags} --run_id {name} --save_weight {name}" + (f" --inject {fault}" if fault else ""))
    return Path(shutil.copy(WORLD / f"{name}_events.jsonl", OUT))


def simulated(name: str, events: list) -> Path:
    """Write a run's events as a callback would: each one reaches the operating system before the next begins."""
    path = OUT / f"{name}_events.jsonl"
    with EventWriter(path) as log:
        for event in events:
            event.model_info["run_id"] = name
            log.write(event)
    return path


def record(steps: int) -> list[Path]:
    prepare()
    print("\n3. PPO: the model is rewarded for answers that are true and kind\n")
    good = live("healthy", "", steps)
    print(f"\n4. The same again, but from step {FAULT.partition('@')[2]} on the learning rate is fifty times too high\n")
    return [good, live("broken", FAULT, steps)]


def simulate() -> list[Path]:
    return [
        simulated("healthy", healthy("ppo", steps=600, seed=3)),
        simulated("broken", faulty("entropy_explosion", "ppo", steps=600, onset=360, seed=3)),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulated", action="store_true", help="do not train; use simulated runs")
    parser.add_argument("--steps", type=int, default=45, help="PPO steps of each run")
    args = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    for name in ("healthy", "broken"):
        (OUT / f"{name}_events.jsonl").unlink(missing_ok=True)
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing and not args.simulated:
        print(f"{', '.join(missing)} not installed (`pip install rldk[train]`): the runs are simulated")
    runs = simulate() if missing or args.simulated else record(args.steps)
    print(f"\nrecorded {' and '.join(map(str, runs))}\n\n$ rldk scan {OUT}\n")
    main(["scan", str(OUT)])
    print(f"\n$ rldk replay {runs[1]}\n")
    main(["replay", str(runs[1])])
    spent = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"\nprocessor time: {spent:.0f} s (user and system)")
    sys.exit(0)
