"""Stops a run early: signals, and updates that are not finite."""

from __future__ import annotations

import math
import signal

import torch
from accelerate import Accelerator

from optimization import whole


class Stopper:
    """SIGTERM and Ctrl-C end the run after the current step, with a checkpoint; a second one ends it at once."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self.before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}

    def close(self) -> None:
        """Restore the earlier signal handlers."""
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _frame: object) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number

    def requested(self, accelerator: Accelerator, also: bool = False) -> bool:
        """Whether any process was told to stop or has its own reason (`also`): all must stop at the same step."""
        told = float(self.signal or 0), float(also)
        if accelerator.num_processes > 1:
            told = tuple(accelerator.reduce(torch.tensor(told, device=accelerator.device), "sum").tolist())
            if told[0] and self.signal is None:
                self.signal = signal.SIGTERM
        return any(told)

    @property
    def exit_code(self) -> int:
        return 0 if self.signal is None else 128 + self.signal


class SkippedUpdates:
    """Counts updates in a row that were skipped because their gradients were not finite; past `limit` the run is dead."""

    def __init__(self, limit: int) -> None:
        self.limit, self.in_a_row, self.applied = limit, 0, 0

    def add(self, applied: bool) -> None:
        self.in_a_row = 0 if applied else self.in_a_row + 1
        self.applied += applied

    @property
    def dead(self) -> str:
        """Why the run must end; empty if it need not."""
        if self.limit and self.in_a_row >= self.limit:
            return f"the gradients of {self.in_a_row} updates in a row were not finite"
        return ""

    @property
    def nothing_learnt(self) -> str:
        """At the end of a run: says so if no update could be made."""
        return f"none of {self.in_a_row} updates had finite gradients" if self.in_a_row and not self.applied else ""


@torch.no_grad()
def weights_are_finite(model: torch.nn.Module) -> bool:
    """Whether all weights are finite, so that the model may be written. If it is sharded, all processes must call this."""
    norms = torch._foreach_norm([weight.detach() for weight in model.parameters()])
    return math.isfinite(float(torch.stack([whole(norm).float() for norm in norms]).sum()))
