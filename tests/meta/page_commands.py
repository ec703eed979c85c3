"""The commands of README and docs, and a folder in which they can be typed as they stand."""

from __future__ import annotations

import re
import shlex
import shutil
import stat
import sys
from dataclasses import replace
from pathlib import Path

from rldk.cli.main import COMMANDS, main
from rldk.core.event import Event
from rldk.testing.checkpoints import write_course
from rldk.testing.streams import faulty, healthy

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
PLACEHOLDERS = re.compile(r"…|\[[A-Z]")


def lines_of(page: Path) -> list[str]:
    """The lines of a page's blocks, those that go on in the next line joined, without comments at their end."""
    blocks = [body.replace("\\\n", " ") for _, body in FENCE.findall(page.read_text())]
    return [re.sub(r"\s{2,}[#a-z].*$", "", line.strip()) for body in blocks for line in body.splitlines() if line.strip()]


def rldk_commands() -> list[str]:
    """Every command of rldk in a block of a page, once; without lines that only show the shape of a command."""
    found = [part.strip() for page in PAGES for line in lines_of(page) for part in line.split("&&")]
    found = [line for line in found if line.startswith("rldk ") and line.split()[1] in COMMANDS and not PLACEHOLDERS.search(line)]
    return list(dict.fromkeys(found))


def write_events(path: Path, events: list[Event], **config: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    named = [replace(event, model_info={"run_id": path.stem}) for event in events]
    named[0] = replace(named[0], model_info={"run_id": path.stem, "config": config})
    path.write_bytes(b"".join(event.to_json() + b"\n" for event in named))


def make_world(folder: Path) -> None:
    """What the pages speak of: the demo, single runs, folders of runs with their settings, checkpoints, a training script."""
    assert main(["demo", "-o", str(folder / "out/demo"), "--json"]) == 0
    well, ill = healthy("ppo", steps=120, seed=1), faulty("kl_explosion", steps=120, onset=60, seed=1)
    for name in ("out/healthy.jsonl", "healthy.jsonl", "main/run.jsonl", "run.jsonl", "out/my_run/run_events.jsonl"):
        write_events(folder / name, well)
    for name in ("out/run.jsonl", "out/broken.jsonl", "broken.jsonl", "logs/run.jsonl", "rldk_logs/my_run_events.jsonl"):
        write_events(folder / name, ill)
    for seed, rate in enumerate((1e-6, 1e-6, 1e-5, 1e-5), 1):
        events = healthy("ppo", steps=60, seed=seed)
        for place in ("runs", "sweep", "out/runs"):
            write_events(folder / place / f"seed_{seed}.jsonl", events, learning_rate=rate, seed=seed)
    for path, name in zip(write_course(folder / "out/saved", count=4), (100, 200, 300, 400), strict=True):
        (folder / "out/run").mkdir(exist_ok=True)
        shutil.move(path, folder / f"out/run/checkpoint-{name}")
    training = "for step in range(5):\n    print({'step': step, 'kl': 0.02, 'reward': 0.5})\n"
    for name in ("train.py", "ppo.py", "trainer/train_grpo.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(training)
    (folder / "bin").mkdir()
    for name, script in (("scancel", "#!/bin/sh\n"), ("deepspeed", "#!/bin/sh\nexec python train.py\n")):
        program = folder / "bin" / name
        program.write_text(script)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (folder / "bin/python").symlink_to(sys.executable)
    (folder / "experiments").mkdir()


def words_of(command: str, hook: str) -> list[str]:
    """The words of a command, with the addresses of examples replaced by one of this machine, and ending by itself."""
    line = re.sub(r"https://hooks\.example\.(?:com|org)/\S*", hook, command)
    line = line.replace("/scratch/runs", "out")
    line = re.sub(r"\s>>?\s*\S+$| \| my_program\b.*$", "", line)  # what goes to a file, or to another program
    words = shlex.split(line, comments=True)[1:]
    if words[0] == "watch":
        words = [*words, "--idle", "0.1"]  # the last one counts
    return words
