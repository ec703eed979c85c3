"""Index a folder on a Ray of this machine with two workers, and kill one of them half-way: `python ray_index.py STORE INDEX`."""

from __future__ import annotations

import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import ray

from rldk.fleet.index import update_index
from rldk.fleet.ray_engine import on_ray
from rldk.fleet.work import Reading

HALF = sum(1 for _ in Path(sys.argv[1]).rglob("*.jsonl")) // 2
KILLED: list[int] = []
DONE: list[Path] = []


def workers(name: str) -> list[psutil.Process]:
    """The worker processes of this Ray with a name. Its agents are called `ray::` too, and Ray does not survive them."""
    found = []
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            found += [child] if child.cmdline()[:1] and child.cmdline()[0].startswith(name) else []
    return found


def on_log(path: Path, _size: int, _rows: list[dict[str, Any]]) -> None:
    """Kill a worker once, after half of the logs."""
    DONE.append(path)
    if len(DONE) >= HALF and not KILLED:
        busy = workers("ray::answer_of") or workers("ray::IDLE")
        if busy:
            KILLED.append(busy[0].pid)
            os.kill(busy[0].pid, signal.SIGKILL)


if __name__ == "__main__":
    store, index = map(Path, sys.argv[1:])
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    _, done = update_index(store, Reading(), path=index, engine=on_ray(), on_log=on_log)
    assert KILLED, "no worker was killed"
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{memory:.0f} MB, judged {done.judged}, killed {len(KILLED)}")
    ray.shutdown()
