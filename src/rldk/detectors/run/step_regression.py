"""The step goes backwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, View

__all__ = ["StepRegression"]


class StepRegression(Detector):
    """An event has a smaller step than the one before it.

    What it catches: a step that goes backwards within one run.
    Why it matters: two processes write one log, or a run was resumed into it without removing the rows after the checkpoint:
        every comparison of before and after is wrong from there on.
    When it misfires: logs that restart their count on purpose; when a file is read, restarts and resumes are recognised before
        this rule sees them.
    What to do: resume with the writer's `resume_step`, give each run its own log, and write from the main process only.
    References: none.
    """

    __slots__ = ("last_step",)
    type: ClassVar[str] = "step_regression"
    family: ClassVar[str] = "run"
    needs: ClassVar[tuple[tuple[str, ...], ...]] = ()
    panels: ClassVar = ("reward",)
    advice: ClassVar[str] = "Give each run its own log, resume with `resume_step`, and write from the main process only."
    clauses: ClassVar = {
        "went_back": Clause("a step is lower than the previous one", "warning", "definition: steps of a run rise"),
    }  # fmt: skip
    last_step: float

    def reset(self) -> None:
        super().reset()
        self.last_step = float("-inf")

    def find(self, view: View) -> Sequence[Finding]:
        before, self.last_step = self.last_step, view.step
        if view.step >= before:
            return ()
        return (Finding(
            "warning", float(view.step), before, f"The step went back from {before:.0f} to {view.step}.", {"before": before}
        ),)
