"""The policy has collapsed onto one answer."""

from __future__ import annotations

from typing import ClassVar

from rldk.detectors.base import Detector, Finding, Setting, View
from rldk.detectors.reward.course import AtBest, reward_has_fallen
from rldk.signals.lagged_level import QUICK, SLOW, LaggedLevel

__all__ = ["EntropyCollapse"]

DIP = 20
STEADY = 1.6  # a fall at an even pace of no more than that from reading to reading makes no tenth in four of them


class EntropyCollapse(Detector):
    """The policy's entropy is all but gone, and the reward has nothing to show for it.

    What it catches: the entropy by token has fallen to a small share of its start and stays there, while the reward is no
        better than at the start, or is on its way down from its best. Also, whatever the reward does, an entropy that was
        at rest and falls to a tenth of that within thirty rows, or a hundred. It is critical while the reward has fallen:
        the policy writes one sentence, and a bad one.
    Why it matters: without entropy nothing is explored, and no gradient leads out of a policy that writes one thing.
    When it misfires: entropy falls in most runs that learn, fast at first and then ever more slowly; with a reward at its
        best that is not reported. A low entropy from the start is the model's nature. In supervised training (token
        accuracy and no reward) the entropy falls because the model learns: it is not judged.
    What to do: lower the learning rate, raise the entropy bonus or the sampling temperature, raise the KL penalty, and go
        back to a checkpoint from before the fall.
    References: Cui et al. 2025, The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models.
    """

    __slots__ = ("_at_best", "_off", "_rest", "floor", "share")
    type: ClassVar[str] = "entropy_collapse"
    tracker: ClassVar[str] = "policy"
    needs: ClassVar = (("entropy_mean",),)
    reads: ClassVar = ("reward_mean", "token_accuracy")
    advice: ClassVar[str] = (
        "Go back before the fall; lower the learning rate, raise the entropy bonus, the temperature or the KL penalty."
    )
    persist: ClassVar[int] = 10
    clear: ClassVar[int] = 10
    settings: ClassVar = {
        "share": Setting(0.1, "share of its start below which the entropy counts as gone", least=0.0, most=1.0),
        "floor": Setting(0.005, "nats at the start below which there is nothing to lose", least=0.0),
    }
    share: float
    floor: float
    _rest: LaggedLevel
    _at_best: AtBest
    _off: int

    def reset(self) -> None:
        super().reset()
        self._rest = LaggedLevel()
        self._at_best = AtBest(1)
        self._off = 0

    def check(self, view: View) -> Finding | None:
        entropy = view.get("entropy_mean")
        level, n = entropy.level, entropy.n
        if view.get("reward_mean").high_index != self._at_best.seen:
            self._at_best.update(view, "entropy_mean")
        if n % QUICK == 0 or n % SLOW == 0:
            self._rest.read(n, level)
        if not level < self.share * entropy.start or n < 10 or entropy.start < self.floor:
            return None
        reward = view.get("reward_mean")
        if reward.n == 0 and view.get("token_accuracy").n > 0:
            return None  # supervised training
        if reward.ready and reward.level > reward.start and reward.level > reward.high - self._allowance(view):
            self._off = 0
            return self._sudden(level, entropy.start)
        self._off += 1
        if level > 0.5 * self._at_best.levels[0] and self._off < view.rows(DIP):
            return None  # as low when the reward was at its best: perhaps a dip
        severity = "critical" if reward_has_fallen(view) else "warning"
        message = f"Entropy fell from {entropy.start:.3g} to {level:.3g} nats a token, and the reward is not at its best."
        evidence = {"entropy_start": entropy.start, "entropy": level}
        return Finding(severity, level, self.share * entropy.start, message, evidence)

    def _sudden(self, level: float, start: float) -> Finding | None:
        """With a reward at its best: judge by where the entropy had come to rest a while before."""
        for rest, most in self._rest.levels():
            if level < self.share * rest and most < STEADY * rest:
                message = f"Entropy fell to {level:.3g} nats a token all at once; it was at rest at {rest:.3g}."
                return Finding("warning", level, self.share * rest, message, {"entropy_rest": rest, "entropy": level})
        if not self.raised:
            return None
        message = f"Entropy is {level:.3g} nats a token still; it began at {start:.3g}."
        return Finding("warning", level, self.share * start, message, {"entropy_start": start, "entropy": level})

    @staticmethod
    def _allowance(view: View) -> float:
        """How far below its best a reward may be and still count as good: a fifth of what was gained, or its noise."""
        reward = view.get("reward_mean")
        return max(0.2 * (reward.high - reward.start), 2.0 * reward.high_spread, 0.05 * abs(reward.high))
