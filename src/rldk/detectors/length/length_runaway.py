"""Responses grow without end."""

from __future__ import annotations

from typing import ClassVar

from rldk.detectors.base import Detector, Finding, Setting, View
from rldk.detectors.reward.course import AtBest, reward_has_fallen, reward_has_risen

__all__ = ["LengthRunaway"]

NOISE = 3.0  # times the spread of the first lengths by which it must be longer


class LengthRunaway(Detector):
    """Responses have grown to the length limit, or many times over, and the reward has nothing to show for it.

    What it catches: nearly all responses run into the limit that few reached at the start, or the mean length is several
        times its start and beyond the spread it had there, while the reward is no better than before. Critical while the
        reward has fallen with it.
    Why it matters: text that never ends cannot be scored, costs the most to sample, and teaches the policy to go on.
    When it misfires: reasoning models grow their answers as they learn; with a reward that rises it is not reported, nor
        where a reward has fallen whose answers were as long when it was at its best. A run
        whose responses fill the limit from the start is set up so.
    What to do: check that the end token is learnt and not masked; penalise over-long responses, or do not train on
        truncated ones; raise the limit if the answers need it.
    References: Yu et al. 2025, DAPO (overlong reward shaping).
    """

    __slots__ = ("_at_best", "cut", "factor")
    type: ClassVar[str] = "length_runaway"
    tracker: ClassVar[str] = "length"
    needs: ClassVar = (("rollout_length_mean", "truncated_frac"),)
    reads: ClassVar = ("reward_mean",)
    advice: ClassVar[str] = (
        "Check that the end token is learnt and not masked; penalise or leave out over-long responses; raise the limit if needed."
    )
    persist: ClassVar[int] = 5
    settings: ClassVar = {
        "cut": Setting(0.9, "share of responses at the limit", least=0.0, most=1.0),
        "factor": Setting(4.0, "how many times its start the length must be", least=1.0),
    }
    cut: float
    factor: float
    _at_best: AtBest

    def reset(self) -> None:
        super().reset()
        self._at_best = AtBest(2)

    def check(self, view: View) -> Finding | None:
        if view.get("reward_mean").high_index != self._at_best.seen:
            self._at_best.update(view, "rollout_length_mean", "truncated_frac")
        length, cut = view.get("rollout_length_mean"), view.get("truncated_frac")
        full = cut.ready and cut.level >= self.cut and cut.start < 0.5 * self.cut
        usual = max(length.start, length.base)
        long = length.ready and length.start > 0 and length.level > max(self.factor * usual, usual + NOISE * length.scale)
        if not (full or long):
            return None
        if reward_has_risen(view):
            return None
        length_then, cut_then = self._at_best.levels
        fallen = reward_has_fallen(view)
        if fallen and (length.level < 1.3 * length_then or (full and not long and cut.level < cut_then + 0.2)):
            return None  # as long when the reward was at its best
        severity = "critical" if fallen else "warning"
        evidence = {"length_start": usual, "length": length.level} if length.ready else {}
        grown = f"{length.level:.4g} tokens on average, from {usual:.4g}"
        if full:
            shown = f"{cut.level:.0%} of the responses run to the length limit" + (f": {grown}" if length.ready else "")
            value, limit = cut.level, self.cut
        else:
            shown, value, limit = f"Responses have grown to {grown}", length.level, self.factor * usual
        return Finding(severity, value, limit, f"{shown}; the reward is no better for it.", evidence)
