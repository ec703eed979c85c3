"""Responses shrink to nothing."""

from __future__ import annotations

from typing import ClassVar

from rldk.detectors.base import Detector, Finding, Setting, View
from rldk.detectors.reward.course import AtBest, reward_has_fallen, reward_has_risen
from rldk.signals.lagged_level import QUICK, SLOW, LaggedLevel

__all__ = ["LengthCollapse"]


class LengthCollapse(Detector):
    """Responses have shrunk to a few tokens, and the reward has nothing to show for it.

    What it catches: the mean length has fallen to a small share of its start and stays there, while the reward is no better
        than before. Critical while the reward has fallen with it.
    Why it matters: a policy that answers with nothing has found the cheapest way to avoid a penalty.
    When it misfires: a length penalty, or a task with short answers, shortens responses rightly; with a reward that rises it
        is not reported, nor where a reward has fallen whose answers were as short when it was at its best, or long before.
    What to do: take back the length penalty or the penalty on the end token, and check that empty answers score worst.
    References: none.
    """

    __slots__ = ("_at_best", "_rest", "share")
    type: ClassVar[str] = "length_collapse"
    tracker: ClassVar[str] = "length"
    needs: ClassVar = (("rollout_length_mean",),)
    reads: ClassVar = ("reward_mean",)
    advice: ClassVar[str] = "Take back the length penalty, and check that empty or trivial answers score worst."
    persist: ClassVar[int] = 8
    settings: ClassVar = {
        "share": Setting(0.2, "share of its start below which the length counts as collapsed", least=0.0, most=1.0)
    }
    share: float
    _at_best: AtBest
    _rest: LaggedLevel

    def reset(self) -> None:
        super().reset()
        self._at_best = AtBest(1)
        self._rest = LaggedLevel()

    def check(self, view: View) -> Finding | None:
        if view.get("reward_mean").high_index != self._at_best.seen:
            self._at_best.update(view, "rollout_length_mean")
        length = view.get("rollout_length_mean")
        n = length.n
        if n % QUICK == 0 or n % SLOW == 0:
            self._rest.read(n, length.level)
        if n < 10 or length.level >= self.share * length.start:
            return None
        if reward_has_risen(view):
            return None
        fallen = reward_has_fallen(view)
        if fallen and length.level > 0.7 * self._at_best.levels[0]:
            return None  # as short when the reward was at its best
        if fallen and self.raised != "critical" and length.level > 0.7 * self._rest.before():
            return None  # as short long before the reward fell
        severity = "critical" if fallen else "warning"
        message = f"Responses shrank from {length.start:.4g} to {length.level:.4g} tokens, and the reward is no better for it."
        return Finding(
            severity, length.level, self.share * length.start, message, {"length_start": length.start, "length": length.level}
        )
