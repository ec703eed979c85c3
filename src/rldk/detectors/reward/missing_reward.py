"""Responses get no reward at all."""

from __future__ import annotations

from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View

__all__ = ["MissingReward"]


class MissingReward(Detector):
    """A part of the responses has no reward: the reward function gave `None`, or not a number.

    What it catches: a share of responses without any reward that stays above 2 %, by the median of five rows, for three rows.
    Why it matters: trainers leave such responses out, or take them for 0, without a word: the run learns from the others
        alone, which are often the easier ones.
    When it misfires: functions that judge some prompts only return `None` for the rest by design, which counts only where no
        other function gave a reward. Rewards that are missing altogether are `dead_reward`.
    What to do: look at the responses without a reward; mend what fails in the function (a parser, a time limit, a service),
        or return the least reward instead of nothing.
    References: none.
    """

    __slots__ = ("share",)
    type: ClassVar[str] = "missing_reward"
    tracker: ClassVar[str] = "reward"
    needs: ClassVar = (("reward_missing_frac",),)
    advice: ClassVar[str] = "Look at responses without a reward, and mend the function; or return the least reward for them."
    persist: ClassVar[int] = 3
    clear: ClassVar[int] = 10
    clauses: ClassVar = {
        "some_missing": Clause(
            "responses have no reward", "warning",
            "definition: what has no reward is not learnt from; 2 % is a judgement",
        ),
    }  # fmt: skip
    settings: ClassVar = {"share": Setting(0.02, "share of responses that may be without a reward", least=0.0, most=1.0)}
    share: float

    def check(self, view: View) -> Finding | None:
        missing = view.get("reward_missing_frac")
        if not (missing.ready and missing.level > self.share):
            return None
        message = f"{missing.level:.0%} of the responses have no reward."
        return Finding("warning", missing.level, self.share, message, {"missing": missing.level})
