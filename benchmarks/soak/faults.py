"""Errors in every function of rldk that runs during a training, one at a time, in one training after another.

First one training without rldk gives the weights, and one with it the functions that run, by phase: while the training begins,
in its steps, and as it ends. Then trainings follow each other in this process. In each of them one function at a time is
replaced by one that raises, until it was called or some hooks have passed; then it is restored and the next one is taken. The
functions that were tried least often come first, so that all of them have their turn.
"""

from __future__ import annotations

import gc
import random
import shutil
import sys
import threading
import traceback
from collections import Counter
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from parts import Account, leftovers, private_folder
from tiny_training import be_quiet, digest, trainer_for, watching
from transformers import TrainerCallback

import rldk

PACKAGE = str(Path(rldk.__file__).parent)
LENGTHS = (2, 6)
"""Updates of a training. Only the short ones have errors in their beginning, which may leave them unwatched."""

_MOST_HOOKS = 3  # while a function may not have been called
_HOLD_BACK = ("monitor/guard.py",)  # what holds errors back cannot hold back its own
_GUARDS = frozenset({"called"})


def main() -> None:
    account = Account()
    account.output = be_quiet()
    account.count(exceptions_into_training=0, leftovers=0, trainings_with_other_weights=0)
    with private_folder() as work:
        weights = {updates: train(work / f"plain{updates}", [], updates) for updates in LENGTHS}
        sites = called_sites(work / "watched", account, weights)
        account.count(functions_that_run_in_a_training=len(sites))
        plan = Plan(sites, random.Random(f"faults {account.seed}"))
        while account.going:
            updates = LENGTHS[account.counts["trainings"] % len(LENGTHS)]
            place = work / f"t{account.counts['trainings']}"
            train_with_faults(place, plan, updates, weights[updates], account)
            account.counts["functions_with_a_fault"] = len(plan.raised)
            account.grown("training")
            account.tell()
            shutil.rmtree(place, ignore_errors=True)


def train(folder: Path, callbacks: list[Any], updates: int) -> str:
    trainer = trainer_for(folder, callbacks, updates)
    trainer.train()
    return digest(trainer)


def train_with_faults(place: Path, plan: Plan, updates: int, weights: str, account: Account) -> None:
    """One training with as many faults as it meets, and what must hold after it."""
    faults = Faults(plan, from_begin=updates == min(LENGTHS))
    account.count(trainings=1)
    try:
        trainer = trainer_for(place, [faults, watching(place), Begun(faults)], updates)
        trainer.train()
        faults.disarm()
        if digest(trainer) != weights:
            account.break_("trainings_with_other_weights", f"the weights differ after faults in {faults.last()}")
    except BaseException as error:  # noqa: BLE001  this is what must never happen
        faults.disarm()
        where = " < ".join(f"{Path(at.filename).name}:{at.lineno}" for at in traceback.extract_tb(error.__traceback__)[:-6:-1])
        account.break_("exceptions_into_training", f"{type(error).__name__}: {error} at {where} after faults in {faults.last()}")
    account.count(faults_raised=len(faults.fired))
    trainer = None
    gc.collect()
    for what in leftovers(place):
        account.break_("leftovers", f"left over: {what} after faults in {faults.last()}")


class Phases(TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Knows whether a training begins, makes its steps, or ends. It stands before rldk's callback."""

    phase = "begin"

    def on_train_end(self, *_: Any, **__: Any) -> None:
        self.phase = "end"


class Begun(TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Stands behind rldk's callback: when it is called, that has begun."""

    def __init__(self, phases: Phases) -> None:
        self.phases = phases

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self.phases.phase = "step"


def called_sites(folder: Path, account: Account, weights: dict[int, str]) -> dict[CodeType, set[str]]:
    """The functions of rldk that a training runs, on its own thread and on others, each with the phases in which it runs."""
    found: dict[CodeType, set[str]] = {}
    phases = Phases()

    def look(frame: Any, kind: str, _: Any) -> None:
        if kind == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found.setdefault(frame.f_code, set()).add(phases.phase)

    updates = max(LENGTHS)
    trainer = trainer_for(folder, [phases, watching(folder), Begun(phases)], updates)
    threading.setprofile(look)
    sys.setprofile(look)
    try:
        trainer.train()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    if digest(trainer) != weights[updates]:
        account.break_("trainings_with_other_weights", "the weights differ without any fault")
    return {code: at for code, at in found.items() if _may_fail(code)}


def _may_fail(code: CodeType) -> bool:
    return not code.co_filename.endswith(_HOLD_BACK) and code.co_name not in _GUARDS and not code.co_name.startswith("<")


def name_of(code: CodeType) -> str:
    return f"{Path(code.co_filename).relative_to(PACKAGE)}:{code.co_firstlineno} {code.co_name}"


class Plan:
    """Which function is next: the one that was tried least often, whether it was called then or not."""

    def __init__(self, sites: dict[CodeType, set[str]], chance: random.Random) -> None:
        self.sites, self.chance = sites, chance
        self.raised: Counter[CodeType] = Counter()
        self.tried: Counter[CodeType] = Counter()

        self.functions: dict[CodeType, list[FunctionType]] = {}
        for one in gc.get_objects():
            if isinstance(one, FunctionType) and one.__code__ in sites:
                self.functions.setdefault(one.__code__, []).append(one)

    def next(self, phase: str) -> tuple[CodeType, list[FunctionType]] | None:
        """A function that runs in this phase, with all that share its code: closures have it in common."""
        those = [code for code, phases in self.sites.items() if phase in phases]
        self.chance.shuffle(those)
        for code in sorted(those, key=self.tried.__getitem__):
            self.tried[code] += 1
            functions = self.functions.get(code) or [one for one in gc.get_referrers(code) if isinstance(one, FunctionType)]
            if functions:
                return code, functions
        return None


class Faults(Phases):
    """Raises an error in one function at a time; the next one is taken as soon as it was raised."""

    def __init__(self, plan: Plan, from_begin: bool) -> None:
        self.plan, self.from_begin = plan, from_begin
        self.fired: list[CodeType] = []
        self._armed: tuple[CodeType, list[FunctionType]] | None = None
        self._age = 0
        self._lock = threading.Lock()

    def last(self) -> str:
        return ", ".join(name_of(code) for code in self.fired[-5:])

    def arm(self) -> None:
        """Choose the next function that runs in this phase, unless the last one may still be called."""
        self._age += 1
        waiting = self._armed is not None and self._age < _MOST_HOOKS
        if waiting or (self.phase == "begin" and not self.from_begin):
            return
        self.disarm()
        chosen = self.plan.next(self.phase)
        if chosen is not None:
            _current[0], self._armed, self._age = self, chosen, 0
            for function in chosen[1]:
                function.__code__ = _raiser(function.__code__)

    def disarm(self) -> None:
        with self._lock:
            code, functions = self._armed or (None, [])
            self._armed = None
        for function in functions:
            function.__code__ = code

    def fire(self) -> None:
        """Called in the place of the function: the next call is its own again. Another thread may have been quicker."""
        armed = self._armed
        self.disarm()
        if armed is not None:
            self.fired.append(armed[0])
            self.plan.raised[armed[0]] += 1
            if self.phase != "begin":  # without its beginning, nothing else of rldk would run
                self.arm()
        raise self.plan.chance.choice(ERRORS)("made to fail")

    def on_init_end(self, *_: Any, **__: Any) -> None:
        self.arm()

    def on_train_end(self, *_: Any, **__: Any) -> None:
        super().on_train_end()
        self.disarm()
        self.arm()

    on_train_begin = on_log = on_step_end = on_save = on_init_end


class Interrupted(BaseException):
    """An error that is not an `Exception`."""


def _disk_full(_: str) -> OSError:
    return OSError(28, "No space left on device")


ERRORS = (RuntimeError, KeyError, MemoryError, AssertionError, Interrupted, _disk_full)
_current: list[Any] = [None]


def _raiser(code: CodeType) -> CodeType:
    """A code that raises and fits into the place of another one."""

    def raiser(*_: Any, **__: Any) -> None:
        import sys

        sys.modules["__main__"]._current[0].fire()

    return raiser.__code__.replace(co_freevars=code.co_freevars)


if __name__ == "__main__":
    main()
