"""Responses get no reward at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View

__all__ = ["MissingReward"]


class MissingReward(Detector):
    """Responses have no reward: the reward function gave `None`, or not a number.

    What it catches: a share of responses without any reward that stays above 2 %, by the median of five rows, for three rows;
        a mean reward that is there by name and has no value (`null`), which is how trainers write that no response has one.
    Why it matters: trainers leave such responses out, or take them for 0, without a word: the run learns from the others
        alone, which are often the easier ones.
    When it misfires: functions that judge some prompts only return `None` for the rest by design, which counts only where no
        other function gave a reward. A log that has a reward in some rows only, and `null` between them, is recognised by
        the gaps that have ended: a further one counts when it is twice as long as the longest of them.
    What to do: look at the responses without a reward; mend what fails in the function (a parser, a time limit, a service),
        or return the least reward instead of nothing.
    References: none.
    """

    __slots__ = ("_gap", "_longest", "_silent", "share")
    type: ClassVar[str] = "missing_reward"
    family: ClassVar[str] = "reward"
    needs: ClassVar = (("reward_missing_frac",),)
    panels: ClassVar = ("reward", "losses")
    advice: ClassVar[str] = "Look at responses without a reward, and mend the function; or return the least reward for them."
    clear: ClassVar[int] = 10
    clauses: ClassVar = {
        "all_missing": Clause(
            "no response has a reward, row after row", "critical",
            "definition: there is nothing to learn from; five rows are beyond the gaps of trainers that score every fourth step",
            persist=5, least=3,
        ),
        "some_missing": Clause(
            "responses have no reward", "warning",
            "definition: what has no reward is not learnt from; 2 % is a judgement", persist=3, least=3,
        ),
    }  # fmt: skip
    settings: ClassVar = {"share": Setting(0.02, "share of responses that may be without a reward", least=0.0, most=1.0)}
    share: float
    _gap: int  # rows without a reward since there was one
    _silent: int  # rows among them that do not speak of the reward, such as those of an evaluation
    _longest: int  # of the gaps that have ended

    def reset(self) -> None:
        super().reset()
        self._gap = self._silent = self._longest = 0

    @classmethod
    def metrics(cls) -> tuple[str, ...]:
        return ()  # it must see the events in which the reward has no value, too

    def find(self, view: View) -> Sequence[Finding]:
        event, missing = view.event, view.get("reward_missing_frac")
        if "reward_mean" in event.metrics:
            if self._gap:
                self._longest, self._gap, self._silent = max(self._longest, self._gap), 0, 0
        elif event.metrics and ("reward_mean" in event.nulls or event.metrics.get("reward_missing_frac") == 1.0):
            self._gap += 1
        elif self._gap:
            self._silent += 1
        found = []
        if self._gap:
            message = f"No response has had a reward for {self._gap} row{'s' * (self._gap > 1)}."
            usual = max(self.clauses["all_missing"].persist, 2.0 * self._longest * view.steps_a_row)
            wait = usual + self._silent * view.steps_a_row
            evidence = {"missing": 1.0, "rows": float(self._gap)}
            found.append(Finding("", 1.0, self.share, message, evidence, clause="all_missing", persist=wait))
        if missing.ready and missing.level > self.share:
            message = f"{missing.level:.0%} of the responses have no reward."
            evidence = {"missing": missing.level}
            found.append(Finding("", missing.level, self.share, message, evidence, clause="some_missing"))
        return found
