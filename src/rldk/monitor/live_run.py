"""Watches your own training loop: `rldk.start` returns a live run, and `log` takes the metrics of each step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rldk.core.errors import UsageError
from rldk.core.jsonio import number_in
from rldk.judge.result import Result
from rldk.monitor.monitor import Monitor
from rldk.monitor.stopping import Stop

__all__ = ["LiveRun"]


class LiveRun:
    """A run that is being trained. It is closed by `close`, at the end of a `with` block, or when the program ends.

    `monitor` does the work; use it for everything that has no method here.
    """

    def __init__(self, monitor: Monitor) -> None:
        self.monitor = monitor

    @property
    def run_id(self) -> str:
        return self.monitor.run_id

    def log(self, step: int, metrics: Mapping[str, Any] | None = None, /, **more: Any) -> Stop | None:
        """Log and judge one step: `run.log(step, kl=0.02, reward=0.7)`, or a mapping for keys that are not Python names.

        Names may be canonical or short (`kl`, `reward`, `entropy`), and unknown ones are kept. Values may be numbers, numpy
        scalars or tensors of one element. Nothing that goes wrong here reaches the training: a value that is not a number is
        left out, and for a step that is not a whole number the next one is used; both are reported once through the `rldk`
        logger. Returns the decision to stop, if `stop_on` was given and it has been taken.
        """
        self.monitor.guard.attempt("a step", self._log, step, {**(metrics or {}), **more})
        return self.monitor.stop

    def _log(self, step: int, given: dict[str, Any]) -> None:
        if not given:
            raise UsageError(f"Expected metrics for step {step}, as in run.log(step, kl=0.02, reward=0.7), got none.")
        self.monitor.observe({**{name: number_in(value) for name, value in given.items()}, "step": number_in(step)})

    @property
    def stop(self) -> Stop | None:
        """The decision to stop, once it is taken."""
        return self.monitor.stop

    @property
    def verdict(self) -> str:
        """The verdict so far."""
        return self.result().verdict

    def result(self) -> Result:
        """Everything that is known about the run now."""
        self.monitor.flush()
        return self.monitor.result()

    def saved(self, step: int) -> None:
        """Note that a checkpoint of this step has been written."""
        self.monitor.saved(step)

    def close(self) -> None:
        """Complete and close all files. A second call does nothing."""
        self.monitor.close()

    def __enter__(self) -> LiveRun:
        return self

    def __exit__(self, *error: Any) -> None:
        self.monitor.__exit__(*error)

    def __repr__(self) -> str:
        result = self.result()
        return f"<LiveRun {self.run_id}: {result.verdict}, {result.reason}>"
