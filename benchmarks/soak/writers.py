"""Kills of a process that writes an event log: every event that it has acknowledged must be found again."""

from __future__ import annotations

import logging
import os
import random
import resource
import shutil
import signal
import struct
import time
from pathlib import Path

from parts import Account, private_folder

from rldk.core.event import Event
from rldk.log import EventReader, EventWriter

_MAX_SECONDS = 0.08


def main() -> None:
    account = Account()
    logging.getLogger("rldk").setLevel(logging.CRITICAL + 1)
    chance = random.Random(f"writers {account.seed}")
    account.count(events_lost=0)
    with private_folder() as folder:
        while account.going:
            kind = chance.choice(["kills", "kills", "kills", "kills with a full disk", "kills with a deleted folder"])
            acknowledged, lost = kill_one(folder / f"r{account.counts['writers']}", kind, chance)
            account.count(writers=1, writers_killed=int(acknowledged > 0), events_acknowledged_by_writers=acknowledged)
            account.count(**{f"writer {kind}".replace(" ", "_"): int(acknowledged > 0)})
            if lost:
                account.break_("events_lost", f"writer {kind}: {lost} of {acknowledged} acknowledged events lost", lost)
            if account.counts["writers"] % 50 == 0:
                account.tell()
    account.tell()


def kill_one(folder: Path, kind: str, chance: random.Random) -> tuple[int, int]:
    """How many events a writer acknowledged before it was killed, and how many of them are not in its log."""
    path = folder / "run_events.jsonl"
    read, write = os.pipe()
    seed, wait = chance.random(), chance.uniform(0.001, _MAX_SECONDS)
    child = os.fork()
    if not child:
        os.close(read)
        _write_events(path, write, random.Random(seed), 30_000 if "full" in kind else None)
    os.close(write)
    time.sleep(wait)
    gone: set[int] = set()
    acknowledged: list[int] = []
    if "deleted" in kind and folder.exists():
        shutil.rmtree(folder, ignore_errors=True)
        deleted = time.monotonic_ns()
        time.sleep(wait)
    else:
        deleted = 0
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(read, "rb") as told:
        for step, when in struct.iter_unpack("<qq", _whole(told.read())):
            acknowledged.append(step)
            if when <= deleted:
                gone.add(step)  # acknowledged before somebody deleted it
    EventWriter(path).close()  # repairs what the kill has left
    there = {event.step for event in EventReader(path)}
    lost = [step for step in acknowledged if step not in there and step not in gone]
    shutil.rmtree(folder, ignore_errors=True)
    return len(acknowledged), len(lost)


def _write_events(path: Path, told: int, chance: random.Random, limit: int | None) -> None:
    """In the child: write events for ever, and report each that is acknowledged, with the time."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 2)
    if limit is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    writer, step = EventWriter(path), 0
    while True:
        step += 1
        padding = "x" * chance.choice([0, 10, 300, 5000])
        before = time.monotonic_ns()
        if writer.write(Event(step, {"loss": chance.random()}, notes=[padding])):
            os.write(told, struct.pack("<qq", step, before))


def _whole(data: bytes) -> bytes:
    return data[: len(data) // 16 * 16]


if __name__ == "__main__":
    main()
