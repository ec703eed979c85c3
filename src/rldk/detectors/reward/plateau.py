"""Nothing was learnt."""

from __future__ import annotations

from statistics import median
from typing import ClassVar

from rldk.core.stats import RollingSlope
from rldk.detectors.base import Detector, Finding, Setting, View

__all__ = ["Plateau"]

BLOCK = 50
LEAST = 5
FEW = 3  # rows of a block, where a row stands for very many steps
LEAST_BLOCKS, MOST_BLOCKS = 8, 40


class Plateau(Detector):
    """The reward is where it began: nothing was learnt.

    What it catches: after some hundred steps, a line through the means of blocks of fifty neither rises nor falls by more
        than chance explains, or by no more than a tenth of what responses differ by; and the first block is like the rest.
        Sooner, if the KL from the reference is next to nothing as well. A log with a row every ten steps has blocks of
        five rows.
    Why it matters: the run pays for itself only if something changes.
    When it misfires: a reward that is high from the start has little to gain and is left alone. Slow tasks learn late: it is
        a warning, said once.
    What to do: where the policy has hardly moved, raise the learning rate, lower the KL penalty, and check that gradients
        reach the weights (frozen layers, an adapter that is not trained); where it has, check that the reward tells better
        from worse and that prompts are neither too hard nor too easy.
    References: none.
    """

    __slots__ = ("_count", "_first_step", "_mean", "_means", "rows", "size", "small", "still", "t")
    type: ClassVar[str] = "plateau"
    tracker: ClassVar[str] = "reward"
    needs: ClassVar = (("reward_mean",),)
    reads: ClassVar = ("policy_lr", "lr", "kl_mean", "reward_std")
    advice: ClassVar[str] = (
        "Raise the learning rate or lower the KL penalty; check that gradients reach the weights and the reward discriminates."
    )
    persist: ClassVar[int] = 1
    clear: ClassVar[int] = 50
    most_raises: ClassVar[int] = 1
    settings: ClassVar = {
        "rows": Setting(600, "steps with a reward before it is judged; a fifth less if the policy has not moved", least=200),
        "t": Setting(2.0, "t value of the trend below which there is none: one in twenty by chance", least=0.0),
        "small": Setting(0.1, "gain, in spreads between responses, that is none", least=0.0),
        "still": Setting(0.005, "KL by token (100 times as much by sequence) below which the policy has not moved", least=0.0),
    }
    rows: float
    still: float
    t: float
    small: float
    size: int
    _first_step: int
    _count: int
    _mean: float
    _means: list[float]

    def reset(self) -> None:
        super().reset()
        self.size = BLOCK
        self._first_step = self._count = 0
        self._mean = 0.0
        self._means = []

    def check(self, view: View) -> Finding | None:
        reward = view.get("reward_mean")
        value = reward.last
        if value - value != 0.0:
            return None
        if reward.n <= LEAST:
            self._see_gap(view, reward.n)
        self._count = count = self._count + 1
        self._mean += (value - self._mean) / count
        if count < self.size:
            return None
        self._means.append(self._mean)
        self._count, self._mean = 0, 0.0
        if len(self._means) > MOST_BLOCKS:
            del self._means[2]  # the first hundred are the start, the rest a window
        kl = view.get("kl_mean")
        limit = self.still * (100.0 if view.reductions.get("kl_mean") == "sequence" else 1.0)
        moved = not (kl.ready and abs(kl.level) < limit)
        rows = self.rows if moved else 0.8 * self.rows
        few = self.size == FEW and reward.n >= LEAST_BLOCKS * FEW and view.step - self._first_step >= rows
        if reward.n * BLOCK < self.size * rows and not few:
            return None
        return self._judge(reward.n, moved, view.get("reward_std").level)

    def _see_gap(self, view: View, count: int) -> None:
        """From the first rows: a row that stands for several steps makes blocks of fewer rows.

        Three at least; and five where a row is more than a block, since a step is then no update but a sample.
        """
        if count == 1:
            self._first_step = view.step
        gap = (view.step - self._first_step) / (LEAST - 1)
        if count == LEAST and gap > 1.0:
            self.size = max(FEW, round(BLOCK / gap)) if gap <= BLOCK else LEAST

    def _judge(self, count: int, moved: bool, spread: float) -> Finding | None:
        """A line through the blocks' means: no plateau where it rises or falls by more than their scatter explains."""
        means = self._means
        if 0.7 < 0.5 * (means[0] + means[1]) <= 1.0 and not spread > 0.5:  # a share of right answers has no wider spread
            return None
        line = RollingSlope(len(means))
        for mean in means:
            line.update(mean)
        slope, error, t = line.fit()
        gain = slope * (len(means) - 1)
        if error == 0.0 or not (abs(t) < self.t or abs(gain) < self.small * spread) or self._learnt_at_once(spread):
            return None
        still = "" if moved else ", and the policy has hardly moved from the reference"
        message = f"After {count} rewards their trend is {gain:.2g} in all, no more than chance explains (t = {t:.2g}){still}."
        return Finding("warning", t, self.t, message, {"gain": gain, "t": t})

    def _learnt_at_once(self, spread: float) -> bool:
        """Whether all that was learnt was learnt in the first block: a line through the rest sees nothing of it."""
        first, *rest = self._means
        usual = median(rest)
        scatter = 1.4826 * median(abs(mean - usual) for mean in rest)
        return abs(usual - first) > max(3.0 * scatter, self.small * spread if spread == spread else 0.0)

    def advice_for(self, view: View, finding: Finding) -> str:
        lr = view.first("policy_lr", "lr")
        return f"{self.advice} The learning rate is {lr.last:.2g} now." if lr.n else self.advice
