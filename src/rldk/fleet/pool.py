"""Work in several processes: a process that dies is replaced, and the task that killed it is reported, not the whole work."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import ceil
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Generic, TypeVar

from rldk.core.errors import ReadError, RLDKError

__all__ = ["ATTEMPTS", "WorkError", "answer_of", "available_cores", "run_in_processes"]

Task = TypeVar("Task")
Answer = TypeVar("Answer")

ATTEMPTS = 2
"""How often a task is tried whose process dies: once more, because the kernel may have killed it for another's memory."""

_AHEAD = 2  # tasks that a process holds, so that it never waits for the next one
_READY = -1


class WorkError(ReadError):
    """A task that has no answer: the processes that worked on it died, or the work failed in a way that nobody expected."""


@dataclass(slots=True)
class _Worker(Generic[Task]):
    process: BaseProcess
    connection: Connection
    tasks: deque[tuple[int, Task]] = field(default_factory=deque)
    ready: bool = False


def available_cores(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """The cores that this process may use: those that it may run on, and no more than its container's share of the time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, ceil(_cores_of(cgroup))))


def _cores_of(cgroup: Path) -> float:
    """The processor time per unit of time that a control group grants; a very large number where it has no limit."""
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):  # version 2, version 1
        with contextlib.suppress(OSError, ValueError):
            quota, period = " ".join((cgroup / name).read_text() for name in names).split()
            if quota != "max" and int(quota) > 0 and int(period) > 0:
                return int(quota) / int(period)
    return sys.maxsize


def run_in_processes(
    function: Callable[[Task], Answer], tasks: Iterable[Task], jobs: int
) -> Iterator[tuple[int, Answer | RLDKError]]:
    """Call `function` with each task in one of `jobs` processes; gives the number of each task with its answer, as it is ready.

    The tasks are taken as there is room for them, so they may be made while others are worked on. An error that the function
    raises is its answer. `function`, tasks and answers must be picklable.
    """
    pool: _Pool[Task, Answer] = _Pool(function, tasks, jobs)
    try:
        yield from pool.run()
    finally:
        pool.close()


class _Pool(Generic[Task, Answer]):
    def __init__(self, function: Callable[[Task], Answer], tasks: Iterable[Task], jobs: int) -> None:
        self.function, self.jobs = function, max(jobs, 1)
        self.context = _context()
        self.waiting: deque[tuple[int, Task]] = deque()
        self.coming = enumerate(tasks)
        self.failures: dict[int, int] = {}
        self.workers: list[_Worker[Task]] = []

    def run(self) -> Iterator[tuple[int, Answer | RLDKError]]:
        while self._assign():
            busy = {worker.connection: worker for worker in self.workers if worker.tasks or not worker.ready}
            for connection in wait(list(busy)):
                worker = busy[connection]  # type: ignore[index]
                try:
                    number, answer = worker.connection.recv()
                except (EOFError, OSError):
                    yield from self._bury(worker)
                    continue
                if number == _READY:
                    worker.ready = True
                    continue
                worker.tasks.popleft()
                self._assign()  # before the answer is used: the process works on meanwhile
                yield number, answer

    def _assign(self) -> bool:
        """Hand out tasks, one to each process before any gets a second; whether there is still something to wait for."""
        for depth in range(_AHEAD):
            for slot in range(self.jobs):
                if slot < len(self.workers) and len(self.workers[slot].tasks) > depth:
                    continue
                task = self.waiting.popleft() if self.waiting else next(self.coming, None)
                if task is None:
                    break
                if slot >= len(self.workers):
                    self.workers.append(self._start())
                self._send(self.workers[slot], task)
        return any(worker.tasks for worker in self.workers)

    def _send(self, worker: _Worker[Task], task: tuple[int, Task]) -> None:
        worker.tasks.append(task)
        with contextlib.suppress(OSError):  # it has just died: the next look at its connection finds that out
            worker.connection.send(task)

    def _start(self) -> _Worker[Task]:
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=_work, args=(theirs, self.function), daemon=True)  # type: ignore[attr-defined]
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def _bury(self, worker: _Worker[Task]) -> Iterator[tuple[int, RLDKError]]:
        """Replace a process that died. The task it was at is tried again or given up; those behind it are not to blame."""
        worker.process.join()
        worker.connection.close()
        self.workers.remove(worker)
        code = worker.process.exitcode or 0
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        if not worker.ready:
            raise RLDKError(f"A worker process ended while it was starting ({how}): use --jobs 1.")
        number, task = worker.tasks.popleft()
        self.waiting.extendleft(reversed(worker.tasks))
        self.failures[number] = self.failures.get(number, 0) + 1
        if self.failures[number] < ATTEMPTS:
            self.waiting.append((number, task))
            return
        memory = "; it may need more memory than there is" if code == -signal.SIGKILL else ""
        yield number, WorkError(f"could not be judged: the process that read it died {ATTEMPTS} times ({how}{memory})")

    def close(self) -> None:
        for worker in self.workers:
            worker.connection.close()
            worker.process.terminate()
        for worker in self.workers:
            worker.process.join()


def _context() -> BaseContext:
    """Processes that begin afresh: a copy of this one could hold locks of its threads. The modules are imported once for all."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["rldk.fleet.work"])
    return context


def _work(connection: Connection, function: Callable[[Any], Any]) -> None:
    """What a worker process does: answer one task after the other until its connection is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asked, which ends this one
    try:
        connection.send((_READY, None))
        while True:
            number, task = connection.recv()
            connection.send((number, answer_of(function, task)))
    except (EOFError, OSError):
        return


def answer_of(function: Callable[[Any], Any], task: Any) -> Any:
    """What the function says of a task; the error where it raises one."""
    try:
        return function(task)
    except RLDKError as error:
        return error
    except Exception as error:  # noqa: BLE001  reported for this task; the others go on
        return WorkError(f"could not be judged: unexpected {type(error).__name__}: {error}")
