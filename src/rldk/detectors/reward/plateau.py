"""Nothing was learnt."""

from __future__ import annotations

from typing import ClassVar

from rldk.core.detector import Detector, Finding, Setting, View
from rldk.core.stats import RunningMoments

__all__ = ["Plateau"]


class Plateau(Detector):
    """The reward is where it began, and the policy is where the reference is: nothing was learnt.

    What it catches: after some hundred rewards the mean of the later ones differs from that of the first hundred by less
        than a tenth of the rewards' own spread over time, and the KL from the reference is next to nothing.
    Why it matters: the run pays for itself only if something changes.
    When it misfires: a reward that is high from the start has little to gain and is left alone, and so is a run that
        moves, whatever its reward does: that is exploration, or another defect.
    What to do: raise the learning rate (the policy has hardly moved), lower the KL penalty, check that gradients reach the
        weights (frozen layers, an adapter that is not trained), and that the reward tells better from worse.
    References: none.
    """

    __slots__ = ("_early_rewards", "_late", "gain", "rows", "still")
    type: ClassVar[str] = "plateau"
    tracker: ClassVar[str] = "reward"
    needs: ClassVar = (("reward_mean",), ("kl_mean",))
    watches: ClassVar = ("reward_mean",)
    reads: ClassVar = ("policy_lr", "lr")
    advice: ClassVar[str] = (
        "Raise the learning rate or lower the KL penalty; check that gradients reach the weights and the reward discriminates."
    )
    persist: ClassVar[int] = 1
    clear: ClassVar[int] = 50
    most_raises: ClassVar[int] = 1
    settings: ClassVar = {
        "rows": Setting(300, "rewards before it is judged", least=100),
        "gain": Setting(0.1, "gain, in spreads of the reward over time, below which nothing was learnt", least=0.0),
        "still": Setting(0.005, "KL by token (100 times as much by sequence) below which the policy has not moved", least=0.0),
    }
    rows: float
    gain: float
    still: float
    _early_rewards: RunningMoments
    _late: RunningMoments

    def reset(self) -> None:
        super().reset()
        self._early_rewards = RunningMoments()
        self._late = RunningMoments()

    def check(self, view: View) -> Finding | None:
        reward = view.get("reward_mean")
        early, late = self._early_rewards, self._late
        (early if reward.n <= 100 else late).update(reward.last)
        if reward.n < self.rows or reward.n % 50:
            return None
        gain = late.mean - early.mean
        spread = early.std
        kl = view.get("kl_mean")
        limit = self.still * (100.0 if view.reductions.get("kl_mean") == "sequence" else 1.0)
        if spread == 0.0 or abs(gain) >= self.gain * spread or not abs(kl.level) < limit or 0.7 < early.mean <= 1.0:
            return None
        message = (
            f"After {reward.n} rewards the mean has changed by {gain:.2g} (spread {spread:.2g}), "
            f"and KL is {kl.level:.2g}: nothing was learnt."
        )
        return Finding("warning", gain, self.gain * spread, message, {"gain": gain, "kl": kl.level})

    def advice_for(self, view: View, finding: Finding) -> str:
        lr = view.first("policy_lr", "lr")
        return f"{self.advice} The learning rate is {lr.last:.2g} now." if lr.n else self.advice
