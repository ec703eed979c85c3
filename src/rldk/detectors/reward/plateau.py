"""Nothing was learnt."""

from __future__ import annotations

from typing import ClassVar

from rldk.core.detector import Detector, Finding, Setting, View
from rldk.core.stats import RollingSlope, RunningMoments

__all__ = ["Plateau"]

BLOCK = 50
MOST_BLOCKS = 40


class Plateau(Detector):
    """The reward is where it began: nothing was learnt.

    What it catches: after some hundred rewards, a line through the means of blocks of fifty neither rises nor falls by more
        than chance explains. Sooner, if the KL from the reference is next to nothing as well.
    Why it matters: the run pays for itself only if something changes.
    When it misfires: a reward that is high from the start has little to gain and is left alone. Slow tasks learn late: it is
        a warning, said once.
    What to do: where the policy has hardly moved, raise the learning rate, lower the KL penalty, and check that gradients
        reach the weights (frozen layers, an adapter that is not trained); where it has, check that the reward tells better
        from worse and that prompts are neither too hard nor too easy.
    References: none.
    """

    __slots__ = ("_block", "_means", "rows", "still", "t")
    type: ClassVar[str] = "plateau"
    tracker: ClassVar[str] = "reward"
    needs: ClassVar = (("reward_mean",),)
    reads: ClassVar = ("policy_lr", "lr", "kl_mean")
    advice: ClassVar[str] = (
        "Raise the learning rate or lower the KL penalty; check that gradients reach the weights and the reward discriminates."
    )
    persist: ClassVar[int] = 1
    clear: ClassVar[int] = 50
    most_raises: ClassVar[int] = 1
    settings: ClassVar = {
        "rows": Setting(600, "rewards before it is judged; a fifth less if the policy has not moved", least=200),
        "t": Setting(1.5, "t value of the trend below which there is none", least=0.0),
        "still": Setting(0.005, "KL by token (100 times as much by sequence) below which the policy has not moved", least=0.0),
    }
    rows: float
    still: float
    t: float
    _block: RunningMoments
    _means: list[float]

    def reset(self) -> None:
        super().reset()
        self._block = RunningMoments()
        self._means = []

    def check(self, view: View) -> Finding | None:
        reward, block = view.get("reward_mean"), self._block
        block.update(reward.last)
        if block.count < BLOCK:
            return None
        self._means.append(block.mean)
        block.reset()
        if len(self._means) > MOST_BLOCKS:
            del self._means[2]  # the first hundred are the start, the rest a window
        kl = view.get("kl_mean")
        limit = self.still * (100.0 if view.reductions.get("kl_mean") == "sequence" else 1.0)
        moved = not (kl.ready and abs(kl.level) < limit)
        if reward.n < (self.rows if moved else 0.8 * self.rows):
            return None
        return self._judge(reward.n, moved)

    def _judge(self, count: int, moved: bool) -> Finding | None:
        """A line through the blocks' means: no plateau where it rises or falls by more than their scatter explains."""
        means = self._means
        if 0.7 < 0.5 * (means[0] + means[1]) <= 1.0:
            return None
        line = RollingSlope(len(means))
        for mean in means:
            line.update(mean)
        slope, error, t = line.fit()
        if error == 0.0 or not abs(t) < self.t:
            return None
        still = "" if moved else ", and the policy has hardly moved from the reference"
        gain = slope * (len(means) - 1)
        message = f"After {count} rewards their trend is {gain:.2g} in all, no more than chance explains (t = {t:.2g}){still}."
        return Finding("warning", t, self.t, message, {"gain": gain, "t": t})

    def advice_for(self, view: View, finding: Finding) -> str:
        lr = view.first("policy_lr", "lr")
        return f"{self.advice} The learning rate is {lr.last:.2g} now." if lr.n else self.advice
