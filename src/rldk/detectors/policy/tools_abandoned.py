"""The policy has stopped using its tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.series import EARLY

__all__ = ["ToolsAbandoned"]


class ToolsAbandoned(Detector):
    """Tool calls, or turns, have fallen to a fifth of what they were.

    What it catches: a mean number of tool calls per episode that was at least 0.5 and has lost four fifths of its highest level;
        or turns that have fallen to those of an episode without calls.
    Why it matters: the policy answers without looking anything up. The reward may even rise, since a guess is short, cannot fail
        and is sometimes right: nothing that the tools were to teach is learnt.
    When it misfires: a policy that has memorised the answers, or a task that needs no tools, does this for good reason:
        compare held-out quality with and without tools.
    What to do: read episodes from before and after; look for calls that fail or cost reward, give credit for good calls, and
        check that the results of calls are masked in the loss.
    References: verl#1569 (turns fall to 2 while the reward rises).
    """

    __slots__ = ("kept",)
    type: ClassVar[str] = "tools_abandoned"
    family: ClassVar[str] = "policy"
    needs: ClassVar = (("tool_calls_mean", "turns_mean"),)
    panels: ClassVar = ("reward", "length")
    special: ClassVar[bool] = True
    advice: ClassVar[str] = (
        "Read episodes from before and after the fall, look for calls that fail or cost reward, and check that the results of "
        "calls are masked in the loss."
    )
    clear: ClassVar[int] = 10
    clauses: ClassVar = {
        "fewer_calls": Clause(
            "tool calls have fallen to a fifth of their highest level", "warning",
            "definition: below half a call per episode most episodes use no tool, and a fall by four fifths leaves one call of "
            "five; verl#1569 fell further", persist=15, min_rows=6,
        ),
        "fewer_turns": Clause(
            "turns have fallen to those of an episode without tool calls", "warning",
            "definition: an episode without calls has one turn, or two where the prompt is counted; verl#1569",
            persist=15, min_rows=6,
        ),
    }  # fmt: skip
    settings: ClassVar = {"kept": Setting(0.2, "share of the highest level at which tools are abandoned", min=0.0, max=1.0)}
    kept: float

    def find(self, view: View) -> Sequence[Finding]:
        calls, turns = view.get("tool_calls_mean"), view.get("turns_mean")
        if calls.n >= EARLY and calls.high >= 0.5 and calls.level <= self.kept * calls.high:
            message = f"An episode has {calls.level:.2g} tool calls; it had {calls.high:.2g}."
            limit, evidence = self.kept * calls.high, {"calls": calls.level, "highest": calls.high}
            return (Finding("", calls.level, limit, message, evidence, clause="fewer_calls"),)
        if turns.n < EARLY:
            return ()
        without = 2.0 if turns.low >= 2.0 else 1.0
        limit = without + self.kept * (turns.high - without)
        if turns.high >= without + 1.0 and turns.level <= limit:
            message = f"An episode has {turns.level:.2g} turns; it had {turns.high:.2g}."
            evidence = {"turns": turns.level, "highest": turns.high}
            return (Finding("", turns.level, limit, message, evidence, clause="fewer_turns"),)
        return ()
