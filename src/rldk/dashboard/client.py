"""The page's side of the reader process: questions to it, and its runs as the panels see them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

import numpy as np

from rldk.core.errors import RLDKError
from rldk.dashboard.processes import numbers, options_of, receive, send
from rldk.present.plots.panel import FloatArray
from rldk.present.plots.source import Span

__all__ = ["Client", "ReaderEnded", "RemoteRun", "notifier_of", "reader_of", "workbench_of"]


class ReaderEnded(RLDKError):
    """The reader process has ended; the next question starts another one."""


class Client:
    """Asks the reader process of a folder, or another one of `module`; one client serves all pages, from any thread."""

    def __init__(self, folder: str | os.PathLike[str], module: str = "rldk.dashboard.reader_process") -> None:
        self.folder, self._module = os.fspath(folder), module
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The answer to a question (see `RunReader` and `Workbench`); starts the process if it does not run."""
        with self._lock:
            process = self._process
            if process is None or process.poll() is not None:
                self._end()
                process = self._process = self._start()
            assert process.stdin is not None and process.stdout is not None
            try:
                send(process.stdin, {"name": name, "arguments": arguments})
                answer: dict[str, Any] = receive(process.stdout)
            except (OSError, EOFError) as error:
                self._end()
                raise ReaderEnded("The process that reads the logs has ended and is being restarted.") from error
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", self._module, self.folder]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    @property
    def pid(self) -> int | None:
        """The reader process."""
        return self._process.pid if self._process is not None else None

    def close(self) -> None:
        """End the reader process."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        try:
            process.wait(2.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@cache
def reader_of(folder: str) -> Client:
    """The one client of a folder in this process."""
    return Client(folder)


@cache
def notifier_of(folder: str) -> Client | None:
    """The client of the process that sends notifications; `None` where there are none."""
    notify, _ = options_of(os.environ)
    return Client(folder, "rldk.dashboard.notifier_process") if notify else None


@cache
def workbench_of(folder: str) -> Client:
    """The client of the process that knows the table of all runs."""
    return Client(folder, "rldk.dashboard.workbench.process")


class RemoteRun:
    """A run in the reader process, as the panels see it."""

    def __init__(self, client: Client, key: str, run: str | None, names: Collection[str], label: str, axis: str = "step") -> None:
        self._client, self._key, self._run, self._names = client, key, run, dict.fromkeys(names)
        self.run_id, self.axis = label, axis

    def names(self) -> Collection[str]:
        return self._names

    def points(self, names: Sequence[str], buckets: int, span: Span = None) -> tuple[FloatArray, list[FloatArray]]:
        asked = {"names": list(names), "buckets": buckets, "span": None if span is None else list(span), "axis": self.axis}
        found = self._client.ask("points", key=self._key, run=self._run, **asked)
        if "x" not in found:  # the run was removed meanwhile
            return numbers(b""), [numbers(b"") for _ in names]
        return numbers(found["x"]), [numbers(y) for y in found["ys"]]

    def places(self, steps: FloatArray) -> FloatArray:
        if self.axis == "step" or not len(steps):
            return steps
        found = self._client.ask("places", key=self._key, run=self._run, steps=steps.tolist(), axis=self.axis)
        return numbers(found["x"]) if "x" in found else np.full(len(steps), np.nan)
