"""Responses get no reward at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View

__all__ = ["MissingReward"]

MANY = 0.67  # share of responses without a reward that is a warning


class MissingReward(Detector):
    """Responses have no reward: the reward function returned `None` or NaN.

    What it catches: a share of responses without a reward that stays above two thirds (median of five rows); above 2 % it is a
        note; a mean reward that is logged without a value (`null`), which is how trainers write that no response has a reward.
    Why it matters: trainers silently drop such responses or count them as 0: the run learns only from the others, which are
        often the easier ones.
    When it misfires: functions that judge only some prompts return `None` for the rest by design; a response counts only if no
        other function gave it a reward. A log with a reward in some rows and `null` between them is recognised by its
        earlier gaps: a new gap counts when it is twice as long as the longest of them.
    What to do: look at the responses without a reward; fix what fails in the function (a parser, a time limit, a service),
        or return the lowest reward instead of nothing.
    References: none.
    """

    __slots__ = ("_gap", "_longest", "_silent", "share")
    type: ClassVar[str] = "missing_reward"
    family: ClassVar[str] = "reward"
    needs: ClassVar = (("reward_missing_frac",),)
    panels: ClassVar = ("reward", "losses")
    advice: ClassVar[str] = "Look at responses without a reward and fix the function, or return the lowest reward for them."
    clear: ClassVar[int] = 10
    clauses: ClassVar = {
        "all_missing": Clause(
            "no response has a reward, row after row", "critical",
            "definition: nothing to learn from; five rows are longer than the gaps of trainers that score every fourth step",
            persist=5, min_rows=3,
        ),
        "some_missing": Clause(
            "responses have no reward", NOTE,
            "may be intended; corpus: three runs that lost half of their rewards still learnt; 2 % is a judgement",
            persist=3, min_rows=3,
        ),
        "most_missing": Clause(
            "most responses have no reward", "warning", "a judgement: the run learns from fewer than a third of its responses",
            persist=5, min_rows=3,
        ),
    }  # fmt: skip
    settings: ClassVar = {"share": Setting(0.02, "share of responses that may be without a reward", min=0.0, max=1.0)}
    share: float
    _gap: int  # rows since the last reward
    _silent: int  # of these, rows without a reward key, such as those of an evaluation
    _longest: int  # longest gap that has ended

    def reset(self) -> None:
        super().reset()
        self._gap = self._silent = self._longest = 0

    @classmethod
    def metrics(cls) -> tuple[str, ...]:
        return ()  # it must also see events in which the reward has no value

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
            usual = max(self.clauses["all_missing"].persist, 2.0 * self._longest * view.steps_per_row)
            wait = usual + self._silent * view.steps_per_row
            evidence = {"missing": 1.0, "rows": float(self._gap)}
            found.append(Finding("", 1.0, self.share, message, evidence, clause="all_missing", persist=wait))
        if missing.ready and missing.level > self.share:
            message = f"{missing.level:.0%} of the responses have no reward."
            evidence = {"missing": missing.level}
            found.append(Finding("", missing.level, self.share, message, evidence, clause="some_missing"))
            if missing.level > MANY:
                found.append(Finding("", missing.level, MANY, message, evidence, clause="most_missing"))
        return found
