"""Real trainings with faults in every function of rldk that runs during them, and trainings that are killed.

TRL's PPO trains a tiny model in a process forked from this one, so that nothing is imported twice. The weights at the end must be
bit-identical to those of a training without a callback, whatever was raised inside rldk.
"""

from __future__ import annotations

import gc
import hashlib
import json
import logging
import os
import random
import shutil
import signal
import struct
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "integrations"))

import trl_tiny  # noqa: E402
from transformers import TrainerCallback  # noqa: E402

from rldk.integrations.trl import RLDKCallback  # noqa: E402
from rldk.log import EventReader, EventWriter  # noqa: E402

UPDATES = 8
PACKAGE = str(ROOT / "src" / "rldk")
_NOT_FAULTY = ("monitor/guard.py",)  # what holds errors back cannot hold back its own
_ENTRIES = ("called",)


def main() -> None:
    seconds, seed = float(sys.argv[1]), int(sys.argv[2])
    end = time.monotonic() + seconds
    chance = random.Random(f"trainings {seed}")
    counts: Counter[str] = Counter()
    broken: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        reference = in_child(lambda told: told(weights=train(work / "reference", [])))["weights"]
        sites = in_child(lambda told: told(sites=called_sites(work / "watched")))["sites"]
        order = sorted(sites)
        chance.shuffle(order)
        sites = {site: sites[site] for site in order}
        counts["functions_that_run_in_a_training"] = len(sites)
        seen: set[str] = set()
        while time.monotonic() < end:
            counts["trainings"] += 1
            place = work / f"t{counts['trainings']}"
            if counts["trainings"] % 2 == 0:
                acknowledged, lost = kill_one(place, chance)
                counts.update(trainings_killed=1, events_acknowledged_by_trainings=acknowledged, events_lost=lost)
                broken += [f"a killed training lost {lost} of {acknowledged} acknowledged events"] if lost else []
            else:
                told = in_child(partial(faulty_training, place, sites, chance.random()))
                fired = told.get("fired", [])
                seen |= set(fired)
                sites = {one: at for one, at in sites.items() if one not in fired} | {one: sites[one] for one in fired}
                counts["faults_raised"] += len(fired)
                for what in (told.get("error"), told.get("left")):
                    if what:
                        counts["exceptions_into_training" if what is told.get("error") else "leftovers"] += 1
                        broken.append(f"{what} after faults in {', '.join(fired[-5:])}")
                if not told.get("error") and told.get("weights") != reference:
                    counts["trainings_with_other_weights"] += 1
                    broken.append(f"the weights differ after faults in {', '.join(fired[-5:])}")
            shutil.rmtree(place, ignore_errors=True)
        counts["functions_with_a_fault"] = len(seen)
    print(json.dumps({**counts, "broken": broken[:20]}))


def train(folder: Path, callbacks: list[Any], updates: int = UPDATES) -> str:
    """Train, and return a digest of the weights."""
    options = {"save_strategy": "steps", "save_steps": 2} if callbacks else {}
    trainer = trl_tiny.ppo_trainer(folder, callbacks, updates=updates, **options)
    trainer.train()
    return digest(trainer)


def digest(trainer: Any) -> str:
    made = hashlib.sha256()
    for one in trainer.model.parameters():
        made.update(one.detach().numpy().tobytes())
    return made.hexdigest()


def watching(folder: Path) -> RLDKCallback:
    return RLDKCallback(folder / "rldk", run_id="run", stop_on="critical", dry_run=True, terminal=False)


class Phases(TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Knows whether a training begins, makes its steps, or ends."""

    phase = "begin"

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.phase = "step"

    def on_train_end(self, *_: Any, **__: Any) -> None:
        self.phase = "end"


def called_sites(folder: Path) -> dict[str, list[str]]:
    """The functions of rldk that the training's thread runs, as `file:line name`, each with the phases in which it runs."""
    found: dict[CodeType, set[str]] = {}
    phases = Phases()

    def look(frame: Any, kind: str, _: Any) -> None:
        if kind == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found.setdefault(frame.f_code, set()).add(phases.phase)

    trainer = trl_tiny.ppo_trainer(folder, [phases, watching(folder)], updates=UPDATES, save_strategy="steps", save_steps=2)
    sys.setprofile(look)
    try:
        trainer.train()
    finally:
        sys.setprofile(None)
    return {site_of(code): sorted(at) for code, at in found.items() if _may_fail(code)}


def _may_fail(code: CodeType) -> bool:
    return not code.co_filename.endswith(_NOT_FAULTY) and code.co_name not in _ENTRIES and not code.co_name.startswith("<")


def site_of(code: CodeType) -> str:
    return f"{Path(code.co_filename).relative_to(PACKAGE)}:{code.co_firstlineno} {code.co_name}"


class Faults(Phases):
    """Raises an error in one function at a time; the next is chosen when it was raised, or has not been called for a while."""

    def __init__(self, sites: dict[str, list[str]], seed: float) -> None:
        self.sites, self.chance = dict(sites), random.Random(seed)
        self.fired: list[str] = []
        self._armed: tuple[FunctionType, CodeType, str] | None = None
        self._age = 0
        self._functions: dict[str, FunctionType] = {}
        for one in gc.get_objects():
            if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(PACKAGE):
                self._functions.setdefault(site_of(one.__code__), one)

    def arm(self) -> None:
        """Choose the next function that runs in this phase."""
        self._age += 1
        if self._armed is not None and self._age < 4:
            return
        self.disarm()
        site = next((site for site, phases in self.sites.items() if self.phase in phases and site in self._functions), None)
        if site is not None:
            del self.sites[site]
            self._age = 0
            function = self._functions[site]
            self._armed = function, function.__code__, site
            function.__code__ = _raiser(function.__code__.co_freevars)
            _current[0] = self

    def disarm(self) -> None:
        if self._armed is not None:
            function, code, _ = self._armed
            function.__code__ = code
            self._armed = None

    def fire(self) -> None:
        """Called in the place of the function: the next call is its own again."""
        assert self._armed is not None
        self.fired.append(self._armed[2])
        self.disarm()
        if self.phase != "begin":  # without its beginning, nothing else of rldk would run
            self.arm()
        raise self.chance.choice([RuntimeError, KeyError, MemoryError, AssertionError, Interrupted, _disk_full])("made to fail")

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        super().on_step_begin()
        self.arm()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        super().on_train_end()
        self.disarm()
        self.arm()

    def on_log(self, *_: Any, **__: Any) -> None:
        self.arm()

    on_step_end = on_save = on_log


class Interrupted(BaseException):
    """An error that is not an `Exception`."""


def _disk_full(_: str) -> OSError:
    return OSError(28, "No space left on device")


_current: list[Any] = [None]


def _raiser(free: tuple[str, ...]) -> CodeType:
    def raiser(*_: Any, **__: Any) -> None:
        import sys

        sys.modules["__main__"]._current[0].fire()

    return raiser.__code__.replace(co_freevars=free)


def faulty_training(folder: Path, sites: dict[str, list[str]], seed: float, told: Any) -> None:
    """In a child: a training with faults; tells what was raised, the weights, and what is left over."""
    faults = Faults(sites, seed)
    trainer = trl_tiny.ppo_trainer(folder, [faults, watching(folder)], updates=UPDATES, save_strategy="steps", save_steps=2)
    faults.arm()
    error = None
    try:
        trainer.train()
    except BaseException as raised:  # noqa: BLE001  this is what must never happen
        import traceback

        where = "".join(traceback.format_tb(raised.__traceback__)[-2:])
        error = f"{type(raised).__name__}: {raised} {where}"
    faults.disarm()
    gc.collect()
    deadline = time.monotonic() + 15
    while (left := _leftovers()) and time.monotonic() < deadline:
        time.sleep(0.05)
    told(fired=faults.fired, error=error, weights=digest(trainer), left=left)


def _leftovers() -> str:
    import psutil

    names = [one.name for one in threading.enumerate() if one.name.startswith("rldk")]
    names += [one.name() for one in psutil.Process().children(recursive=True)]
    return f"left over: {', '.join(names)}" if names else ""


def in_child(work: Any) -> dict[str, Any]:
    """What a function tells from a forked process."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        quiet()
        status = 1
        try:
            work(lambda **told: os.write(write, json.dumps(told).encode()))
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(data) if data else {"error": f"the process ended with status {status}"}


def quiet() -> None:
    devnull = os.open(os.devnull, os.O_WRONLY)
    for one in (1, 2):
        os.dup2(devnull, one)
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")


def kill_one(folder: Path, chance: random.Random) -> tuple[int, int]:
    """Kill a training; how many events it had acknowledged, and how many of them are not in its log."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        quiet()
        real = EventWriter.write

        def tell(writer: EventWriter, event: Any) -> bool:
            done = real(writer, event)
            if done:
                os.write(write, struct.pack("<q", event.step))
            return done

        EventWriter.write = tell  # type: ignore[method-assign]
        try:
            train(folder, [watching(folder)], updates=1000)
        finally:
            os._exit(1)
    os.close(write)
    log = folder / "rldk" / "run_events.jsonl"
    deadline = time.monotonic() + 120
    while not (log.exists() and log.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(chance.uniform(0.0, 1.0))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(read, "rb") as pipe:
        acknowledged = [step for (step,) in struct.iter_unpack("<q", pipe.read())]
    EventWriter(log).close()
    there = {event.step for event in EventReader(log)}
    return len(acknowledged), sum(step not in there for step in acknowledged)


if __name__ == "__main__":
    main()
