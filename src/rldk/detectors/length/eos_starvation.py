"""Responses do not end."""

from __future__ import annotations

from typing import ClassVar

from rldk.detectors.base import Detector, Finding, Setting, View
from rldk.detectors.reward.course import reward_has_risen

__all__ = ["EosStarvation"]


class EosStarvation(Detector):
    """Hardly any response ends by itself, and the reward does not rise.

    What it catches: from the start, or after a time when they did, responses no longer end with the end token, for long,
        while the reward is no better than at the start.
    Why it matters: a response that is cut off is scored on half an answer; most rewards then say nothing.
    When it misfires: base models and tasks with a fixed length fill the limit and may learn all the same; a reward that
        rises is left alone.
    What to do: raise the length limit, check the stop tokens and the chat template, or start from a model tuned to stop.
    References: TRL's `missing_eos_penalty`.
    """

    __slots__ = ("share",)
    type: ClassVar[str] = "eos_starvation"
    tracker: ClassVar[str] = "length"
    needs: ClassVar = (("eos_frac", "eos_count", "truncated_frac"), ("reward_mean",))
    watches: ClassVar = ("eos_frac", "eos_count", "truncated_frac")
    advice: ClassVar[str] = "Raise the length limit, check stop tokens and chat template, or start from a model tuned to stop."
    persist: ClassVar[int] = 30
    clear: ClassVar[int] = 10
    settings: ClassVar = {
        "share": Setting(0.02, "share of responses that end, below which they count as not ending", least=0.0, most=1.0)
    }
    share: float

    def check(self, view: View) -> Finding | None:
        ended, count, cut = view.get("eos_frac"), view.get("eos_count"), view.get("truncated_frac")
        if ended.ready:
            share = ended.level
        elif cut.ready:
            share = 1.0 - cut.level
        elif count.ready:
            share = 0.0 if count.level == 0.0 else 1.0
        else:
            return None
        if share > self.share or not view.get("reward_mean").ready or reward_has_risen(view):
            return None
        some = "None" if share < 0.005 else f"Only {share:.0%}"
        message = f"{some} of the responses end by themselves, and the reward does not rise."
        return Finding("warning", share, self.share, message, {"ending": share})
