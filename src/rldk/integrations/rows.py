"""Turns the rows that a framework logs into events for a monitor: one event per step. No error reaches the training."""

from __future__ import annotations

import atexit
import os
import re
import threading
import weakref
from collections.abc import Mapping
from typing import Any

from rldk.core.catalog.axes import STEP_KEYS, step_of
from rldk.core.jsonio import number_in, to_number, to_step
from rldk.integrations.processes import is_main_process
from rldk.monitor import Monitor, TrainingStopped
from rldk.monitor.outputs import Output, Terminal
from rldk.monitor.run_files import new_run_id
from rldk.runs.canonical import Canonicaliser, prefix_held_out

__all__ = ["RowLog", "run_name"]

_open: weakref.WeakSet[RowLog] = weakref.WeakSet()
_BAD = re.compile(r"[^A-Za-z0-9._+=@ -]+")


class RowLog:
    """Takes rows of any framework and passes them to a monitor.

    Rows of one step are merged, because many frameworks log a step in several calls: the event is made when the first row of
    another step arrives, or at the end. With `whole_rows` each row is one step, and is judged at once.

    Args:
        framework: the framework whose keys the rows have; `None`: recognised by the keys.
        output_dir: where the files of the run go.
        run_id: the name of the run; default: the framework's name and the time.
        stop_on: `critical` or `warning`: after such an anomaly `log` raises `TrainingStopped`, once everything is written.
        terminal: print alerts to stderr as they are raised.
        options: further options of `rldk.monitor.Monitor` (`limits`, `config`, `confirm`, `dry_run`, `run_config` …).
    """

    def __init__(
        self,
        framework: str | None = None,
        output_dir: str | os.PathLike[str] | None = "./rldk_logs",
        run_id: str | None = None,
        *,
        whole_rows: bool = False,
        stop_on: str | None = None,
        terminal: bool = True,
        **options: Any,
    ) -> None:
        actions: list[Output] = [*options.pop("actions", ()), *([Terminal()] if terminal else [])]
        options.setdefault("main_process", is_main_process())
        self.monitor = Monitor(
            output_dir, run_id or new_run_id(framework or "run"), stop_on=stop_on, actions=actions, **options
        )  # fmt: skip
        self._guard = self.monitor.guard
        self._whole_rows = whole_rows
        self._canonicaliser = Canonicaliser(framework, recognises=framework is None)
        self._row: dict[str, Any] = {}
        self._notes: list[str] = []
        self._step: int | None = None
        self._last, self._counts = -1, True
        self._lock = threading.RLock()
        _open.add(self)

    def log(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """Take a row. Without `step`, its keys are searched for a step; if there is none, the row belongs to the previous step.

        Raises:
            TrainingStopped: only if `stop_on` was given and the monitor has decided to stop.
        """
        with self._lock:
            self._guard.attempt("a row", self._take, metrics, step)
        if self.monitor.stop is not None:
            self.close()
            raise TrainingStopped(self.monitor.stop)

    def flush(self) -> None:
        """Make the event of the rows that are waiting."""
        with self._lock:
            self._guard.attempt("a row", self._observe)

    def close(self) -> None:
        """Judge what is waiting, and complete the files. A second call does nothing."""
        self.flush()
        self.monitor.close()

    def _take(self, metrics: Mapping[str, Any], step: int | None) -> None:
        numbers = {key: value for key, given in metrics.items() if (value := _number(given)) is not None}
        if not numbers:
            return  # tables, pictures, texts
        at = _step_of(metrics, step)
        self._counts = self._counts and at is None
        if at is None:
            at = self._next_step(numbers)
        if at != self._step:
            self._observe()
        if at < self._last:
            self._notes.append(f"Logged late, for step {at}.")
            at = self._last
        self._step = max(at, 0)
        self._row.update(numbers)
        if self._whole_rows:
            self._observe()

    def _next_step(self, row: Mapping[str, float]) -> int:
        """The step of a row without one: the previous step. If no row has named a step, a repeated key begins the next one."""
        now = max(self._last, 0) if self._step is None else self._step
        return now + 1 if self._counts and (self._step is None or not row.keys().isdisjoint(self._row)) else now

    def _observe(self) -> None:
        row, notes, step = self._row, self._notes, self._step
        self._row, self._notes, self._step = {}, [], None
        if not row or step is None:
            return
        self._last = step
        event = self._canonicaliser.event({**row, "step": step})
        if event is not None:
            event = prefix_held_out(event)
            event.notes = [*event.notes, *notes]
            self.monitor.observe(event, canonical=True)


def run_name(*parts: object) -> str:
    """A run id of these parts, without characters that are not allowed in file names."""
    name = _BAD.sub("_", "_".join(str(part) for part in parts if part))
    return (name.strip(" .-+=@") or "run")[:100]


def _step_of(row: Mapping[str, Any], step: Any) -> int | None:
    if step is not None:
        return to_step(_number(step))
    return step_of({key: row[key] if isinstance(row[key], str) else _number(row[key]) for key in STEP_KEYS if key in row})


def _number(value: Any) -> float | None:
    """A number, a numpy scalar or a tensor of one element as a number; `None` for everything else."""
    return None if isinstance(value, str) else to_number(number_in(value))


@atexit.register
def _flush_all() -> None:
    """Judge the last step of a program that ends without closing; its monitor then says how it ended, and closes."""
    for log in list(_open):
        log.flush()
