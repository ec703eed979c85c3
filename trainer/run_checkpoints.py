"""The checkpoints of one run: resuming and saving, for all stages."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Any

from accelerate import Accelerator

from checkpoint import (
    CheckpointError,
    check_fingerprint,
    checkpoint_root,
    find_checkpoint,
    fingerprint,
    load_checkpoint,
    save_checkpoint,
    set_aside,
)
from sharding import load_sharded, save_sharded
from stopping import weights_are_finite


class RunCheckpoints:
    """Finds, loads and writes the checkpoints of a run.

    Args:
        samples_per_step: of all processes together.
        data: what is trained on; a resume with other data is refused.
    """

    def __init__(self, args: argparse.Namespace, accelerator: Accelerator, samples_per_step: int, data: Iterable[Any]) -> None:
        self.args, self.accelerator, self.root = args, accelerator, checkpoint_root(args)
        self.identity = fingerprint(args, samples_per_step, data)
        self.said: list[str] = []

    def resume(self, models: dict[str, Any], optimizers: dict[str, Any]) -> dict[str, Any]:
        """Restore weights and optimizers from the checkpoint of --from_resume, before accelerate wraps them; returns the rest of
        its state. `said` has what the run should print about it.
        """
        if not self.args.from_resume:
            if self.accelerator.is_main_process:
                set_aside(self.root)  # of an earlier run with this name
            return {"step": 0}
        found = find_checkpoint(self.args.from_resume, self.root)
        if found is None:
            self.said.append("nothing to resume from: starting at step 1")
            return {"step": 0}
        if self.args.fsdp:
            state = load_sharded(found, models["model"], optimizers["model"])
        else:
            state = load_checkpoint(found, models, optimizers)
        differences = check_fingerprint(state.get("fingerprint"), self.identity, self.args.resume_anyway)
        self.said.append(f"resumed after step {state['step']} from {found}")
        self.said += [f"resumed although the run differs: {difference}" for difference in differences]
        return state

    def save(
        self, step: int, models: dict[str, Any], optimizers: dict[str, Any], state: dict[str, Any], say: Callable[[str], None]
    ) -> None:
        """Write the checkpoint of a step. If that fails, `say` why and continue: there may be space again for the next one."""
        state = {**state, "fingerprint": self.identity}
        given = (self.root, step), (state, self.args.keep_checkpoints)
        try:
            if not all(map(weights_are_finite, models.values())):
                raise CheckpointError(f"The weights after step {step} are not finite: no checkpoint is written")
            if self.args.fsdp:
                save_sharded(self.accelerator, *given[0], models["model"], optimizers["model"], *given[1])
            elif self.accelerator.is_main_process:
                save_checkpoint(*given[0], models, optimizers, *given[1])
        except CheckpointError as error:
            say(f"{error}.")
        self.accelerator.wait_for_everyone()

    @property
    def way_back(self) -> str:
        """How a run that was cut short can be resumed."""
        return f"Checkpoints in {self.root}; resume with --from_resume."
