"""Kills of real trainings: every event that one has acknowledged must be in its log.

Each training runs in a process forked from this one, so that nothing is imported twice.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import struct
import time
from pathlib import Path
from typing import Any

from parts import Account, private_folder
from tiny_training import be_quiet, trainer_for, watching

from rldk.log import EventReader, EventWriter

MOST_EVENTS = 6
PATIENCE = 300.0


def main() -> None:
    account = Account()
    account.output = be_quiet()
    chance = random.Random(f"kills {account.seed}")
    account.count(events_lost=0)
    with private_folder() as work:
        while account.going:
            place = work / f"t{account.counts['events_acknowledged_by_trainings']}"
            acknowledged, lost = kill_one(place, chance)
            begun = acknowledged > 1
            account.count(trainings_killed=int(begun), trainings_that_did_not_begin=int(not begun))
            account.count(events_acknowledged_by_trainings=acknowledged)
            if lost:
                account.break_("events_lost", f"a killed training lost {lost} of {acknowledged} acknowledged events", lost)
            shutil.rmtree(place, ignore_errors=True)
            account.tell()


def kill_one(folder: Path, chance: random.Random) -> tuple[int, int]:
    """Kill a training after two to six events; how many it had acknowledged, and how many of them are not in its log."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        try:
            _train(folder, write)
        finally:
            os._exit(1)
    os.close(write)
    steps = _read_steps(read, chance.randint(2, MOST_EVENTS))
    time.sleep(chance.uniform(0.0, 0.3))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    steps += _read_steps(read, None)
    os.close(read)
    log = folder / "rldk" / "run_events.jsonl"
    EventWriter(log).close()  # repairs what the kill has left
    there = {event.step for event in EventReader(log)}
    return len(steps), sum(step not in there for step in steps)


def _train(folder: Path, told: int) -> None:
    """In the child: train until killed, and report each event that is acknowledged."""
    real = EventWriter.write

    def tell(writer: EventWriter, event: Any) -> bool:
        done = real(writer, event)
        if done:
            os.write(told, struct.pack("<q", event.step))
        return done

    EventWriter.write = tell  # type: ignore[method-assign]
    trainer_for(folder, [watching(folder)], updates=1000).train()


def _read_steps(pipe: int, count: int | None) -> list[int]:
    """So many steps from the pipe, or all until its end; fewer if nothing comes for a long time."""
    steps: list[int] = []
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError()))
    signal.alarm(int(PATIENCE))
    try:
        while (count is None or len(steps) < count) and (data := os.read(pipe, 8)):
            steps.append(struct.unpack("<q", data)[0])
    except TimeoutError:
        pass
    finally:
        signal.alarm(0)
    return steps


if __name__ == "__main__":
    main()
