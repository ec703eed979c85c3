"""Bad events, outputs that fail or sleep, full disks and deleted folders, at random, in one process that must not grow."""

from __future__ import annotations

import logging
import random
import resource
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
from parts import Account, leftovers, private_folder

from rldk.core.event import Event
from rldk.log import EventReader, EventWriter
from rldk.monitor import Monitor, Output
from rldk.testing.streams import faulty, healthy

BAD: list[Any] = [
    None, "text", [1.0], np.zeros(2), 1j, 10**400, float("nan"), float("-inf"), {"a": 1}, object(), b"x", "\ud800", 2**70, True,
]  # fmt: skip
STEPS = 60


class Bad(Output):
    """Fails, sleeps or works, at random; as quick output or on its own thread."""

    def __init__(self, chance: random.Random, own_thread: bool) -> None:
        self.chance, self.own_thread = chance, own_thread  # type: ignore[misc]

    @property
    def key(self) -> str:
        if self.chance.random() < 0.2:
            raise ValueError("no key")
        return f"bad {id(self)}"

    def _act(self, *_: Any) -> None:
        throw = self.chance.random()
        if throw < 0.05 and self.own_thread:
            time.sleep(0.02)
        elif throw < 0.3:
            raise self.chance.choice([RuntimeError, OSError, MemoryError, GeneratorExit, StopIteration])("made to fail")

    start = take = alert = save = _act


def main() -> None:
    account = Account()
    logging.getLogger("rldk").setLevel(logging.CRITICAL + 1)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    chance = random.Random(f"events {account.seed}")
    account.count(exceptions_into_training=0, events_lost=0, leftovers=0)
    streams = [healthy("ppo", steps=STEPS, seed=1), faulty("kl_explosion", steps=STEPS, onset=20, seed=1)]
    with private_folder() as work:
        while account.going:
            folder = work / "run"
            try:
                watch_one(folder, chance, chance.choice(streams), account)
            except BaseException as error:  # noqa: BLE001  this is what must never happen
                account.break_("exceptions_into_training", f"{type(error).__name__} into training: {error}")
            if account.counts["monitors"] % 20 == 0:
                for what in leftovers(work):
                    account.break_("leftovers", f"left over by a monitor: {what}")
                account.grown("monitor")
                account.tell()
            shutil.rmtree(folder, ignore_errors=True)
    account.tell()


def watch_one(folder: Path, chance: random.Random, events: list[Event], account: Account) -> None:
    """One run with everything against it."""
    acknowledged: list[int] = []
    real = EventWriter.write

    def write(writer: EventWriter, event: Event) -> bool:
        done = real(writer, event)
        if done:
            acknowledged.append(event.step)
        return done

    EventWriter.write = write  # type: ignore[method-assign]
    kept = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        outputs = [Bad(random.Random(chance.random()), chance.random() < 0.5) for _ in range(2)]
        with Monitor(folder, run_id="run", actions=outputs, stop_on="critical", limits={"reward_mean": 1e9}) as monitor:
            for event in events:
                given = event
                throw = chance.random()
                if throw < 0.2:
                    given = Event(event.step, {**event.metrics, "own": chance.choice(BAD)})
                    account.count(bad_events=1)
                elif throw < 0.25:
                    given = Event(chance.choice(BAD), event.metrics)
                    account.count(bad_events=1)
                elif throw < 0.26:
                    shutil.rmtree(folder, ignore_errors=True)
                    acknowledged.clear()
                    account.count(deleted_folders=1)
                elif throw < 0.28:
                    resource.setrlimit(resource.RLIMIT_FSIZE, (chance.randrange(1, 30_000), kept[1]))
                    account.count(full_disks=1)
                elif throw < 0.34:
                    resource.setrlimit(resource.RLIMIT_FSIZE, kept)
                monitor.observe(given)
                account.count(events_observed=1)
                if throw > 0.95:
                    monitor.saved(event.step)
                    monitor.alert(chance.choice([event.step, *BAD]), "own", "Something.", chance.choice(["critical", "odd"]))
            resource.setrlimit(resource.RLIMIT_FSIZE, kept)
    finally:
        EventWriter.write = real  # type: ignore[method-assign]
        resource.setrlimit(resource.RLIMIT_FSIZE, kept)
    account.count(monitors=1)
    there = {event.step for event in EventReader(folder / "run_events.jsonl")}
    lost = [step for step in acknowledged if step not in there]
    if lost:
        account.break_("events_lost", f"a monitor lost {len(lost)} acknowledged events", len(lost))


if __name__ == "__main__":
    main()
