"""Write a healthy and a broken run, and judge both: what rldk looks like, in seconds and without training.

The runs are simulated, with samples of responses and small checkpoints, so that report and dashboard have everything to show.
With --train, two small language models are trained instead (from a checkout, with rldk[train], some minutes on a CPU).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rldk.cli.options import add_json
from rldk.cli.output import console, print_json
from rldk.core.errors import UsageError
from rldk.core.text import clean

if TYPE_CHECKING:
    from rldk.core.event import Event
    from rldk.judge.results import Results

EXAMPLES = """
rldk demo
rldk demo -o out/demo --json
rldk dashboard out/demo
"""

STEPS, ONSET, SEED = 240, 140, 3
_EVERY_SAMPLE, _EVERY_CHECKPOINT = 20, 40
_PROMPTS = ("What colour is the sky?", "Name a small animal.", "Is two plus two four?", "What do bees make?")
_ANSWERS = ("The sky is blue today.", "A mouse is a small animal.", "Yes, two plus two is four.", "Bees make honey.")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", default="out/demo", metavar="DIR", help="where to write the runs (default: out/demo)")
    parser.add_argument("--train", action="store_true", help="train two small models instead of simulating them")
    add_json(parser, "the files and verdicts")


def run(args: argparse.Namespace) -> int:
    from rldk.judge.results import judge_paths

    if args.train:
        return _train()
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    streams = import_module("rldk.testing.streams")
    logs = [
        _write(folder, "healthy", streams.healthy("ppo", steps=STEPS, seed=SEED)),
        _write(folder, "broken", streams.faulty("entropy_explosion", "ppo", steps=STEPS, onset=ONSET, seed=SEED)),
    ]
    judged = judge_paths([str(log) for log in logs])
    if args.json:
        verdicts = {result.run.run_id: result.verdict for result in judged}
        print_json({"folder": str(folder), "logs": [str(log) for log in logs], "verdicts": verdicts})
    else:
        _show(folder, judged)
    return 0


def _show(folder: Path, judged: Results) -> None:
    from rich.text import Text

    from rldk.present.verdicts import STYLES

    out = console()
    for result in judged:
        worst = result.worst
        said = f"{worst.title} since step {worst.step}. {worst.advice}" if worst else result.reason
        out.print(Text.assemble((result.verdict.upper(), STYLES[result.verdict]), f"  {result.run.run_id}: {clean(said, 400)}"))
    place = clean(folder)
    out.print(f"\nwrote two runs to {place}. Next:", style="bold")
    for command, what in (
        (f"rldk scan {place}", "what went wrong, since when, why, and what to do"),
        (f"rldk compare {place}/healthy_events.jsonl {place}/broken_events.jsonl", "where the two part"),
        (f"rldk report {place} -o report.html", "one page with everything"),
        (f"rldk dashboard {place}", "the same in the browser (needs rldk[dashboard])"),
    ):
        out.print(f"  {command}    {what}", style="dim", soft_wrap=True)


def _write(folder: Path, name: str, events: list[Event]) -> Path:
    """A run as a monitor writes it: its event log with samples, and a summary of its checkpoints."""
    path = folder / f"{name}_events.jsonl"
    for event in events:
        event.model_info["run_id"] = name
        if event.step % _EVERY_SAMPLE == 0:
            event.extra["samples"] = _samples(event, broken=name == "broken" and event.step > ONSET)
    rate = 1e-5 if name == "healthy" else 5e-4
    highest = max(event.metrics["lr"] for event in events)
    for event in events:
        event.metrics["lr"] *= rate / highest  # the log has the schedule of the rate that was set
    events[0].model_info["config"] = {"learning_rate": rate, "kl_coef": 0.05, "seed": SEED}
    path.write_bytes(b"".join(event.to_json() + b"\n" for event in events))
    _checkpoints(folder, name)
    return path


def _samples(event: Event, broken: bool) -> list[dict[str, Any]]:
    reward = event.metrics.get("reward_mean", 0.0)
    texts = [" ".join(reversed(answer.lower().split())) * 3 if broken else answer for answer in _ANSWERS]
    return [
        {"prompt": prompt, "completion": text, "reward": round(reward + 0.1 * (number - 1.5), 3)}
        for number, (prompt, text) in enumerate(zip(_PROMPTS, texts, strict=True))
    ]


def _checkpoints(folder: Path, name: str) -> None:
    """Small real checkpoints: weights that drift, and in the broken run leap after its onset."""
    import numpy as np

    from rldk.checkpoints import CheckpointHistory, add_to_summary
    from rldk.checkpoints.safetensors_file import write_safetensors

    rng = np.random.default_rng(SEED)
    weights = {f"layers.{number}.weight": rng.normal(0, 0.1, (16, 16)).astype("float32") for number in range(3)}
    summary = folder / f"{name}_checkpoint_summary.csv"
    summary.unlink(missing_ok=True)
    history = CheckpointHistory()
    for step in range(_EVERY_CHECKPOINT, STEPS + 1, _EVERY_CHECKPOINT):
        size = 0.05 if name == "broken" and step > ONSET else 0.001
        weights = {key: (value + rng.normal(0, size, value.shape)).astype("float32") for key, value in weights.items()}
        path = folder / f"{name}_checkpoints" / f"checkpoint-{step}"
        write_safetensors(path / "model.safetensors", weights)
        add_to_summary(summary, history.add(path, step))
    history.close()


def _train() -> int:
    script = Path(__file__).resolve().parents[4] / "examples" / "first_look.py"
    if not script.is_file():
        raise UsageError("--train needs a checkout of the repository, which has the trainer. `rldk demo` alone needs nothing.")
    return subprocess.run([sys.executable, str(script)], check=False).returncode
