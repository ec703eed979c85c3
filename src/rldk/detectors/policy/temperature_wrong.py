"""The sampling temperature is far from 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, View

__all__ = ["TemperatureWrong"]

OF_SOMETHING_ELSE = 20.0  # no sampler is given such a temperature; a processor has it


class TemperatureWrong(Detector):
    """Responses are sampled at a temperature so low that nothing is explored, or so high that the text is noise.

    What it catches: a sampling temperature below 0.3 or above 1.6; below 0.15 or above 2.2 it is critical.
        Above 20 it counts as that of a processor.
    Why it matters: near 0 all responses to a prompt are the same, and their rewards do not differ. Far above 1 the text is
        noise, and the policy learns from text that is never sampled in use.
    When it misfires: schedules that end at a low temperature; evaluation that is logged as training.
    What to do: sample at 0.7 to 1.2, by default at 1: then the policy that samples is the one that is trained.
    References: TRL and verl sample at 1.0 by default.
    """

    __slots__ = ()
    type: ClassVar[str] = "temperature_wrong"
    family: ClassVar[str] = "policy"
    needs: ClassVar = (("temperature",),)
    panels: ClassVar = ("entropy", "reward")
    advice: ClassVar[str] = "Sample at a temperature of 0.7 to 1.2 (`temperature`)."
    clear: ClassVar[int] = 3
    clauses: ClassVar = {
        "absurd": Clause(
            "the temperature is below 0.15 or above 2.2", "critical",
            "definition: at 0.15 a token half as likely as the best is sampled once in a hundred times", persist=1, min_rows=1,
        ),
        "unusual": Clause(
            "the temperature is below 0.3 or above 1.6", "warning", "frameworks and recipes sample between 0.6 and 1.2",
            persist=1, min_rows=1,
        ),
    }  # fmt: skip

    def find(self, view: View) -> Sequence[Finding]:
        value = view.get("temperature").last
        if not (0.0 <= value < 0.3 or 1.6 < value < OF_SOMETHING_ELSE):
            return ()
        clause = "absurd" if value < 0.15 or value > 2.2 else "unusual"
        message = f"Responses are sampled at a temperature of {value:.3g}."
        return (Finding("", value, 1.0, message, {"temperature": value}, clause=clause),)

    def advice_for(self, view: View, finding: Finding) -> str:
        return f"{self.advice} It is {finding.value:.3g} now."
