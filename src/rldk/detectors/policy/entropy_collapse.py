"""The policy has collapsed onto one answer."""

from __future__ import annotations

from typing import ClassVar

from rldk.core.detector import Detector, Finding, Setting, View
from rldk.detectors.reward.policy_collapse import reward_has_fallen

__all__ = ["EntropyCollapse"]


class EntropyCollapse(Detector):
    """The policy's entropy is all but gone, and the reward has nothing to show for it.

    What it catches: the entropy by token has fallen to a small share of its start and stays there, while the reward is no
        better than at the start, or is on its way down from its best. It is critical while the reward has fallen: the
        policy writes one sentence, and a bad one.
    Why it matters: without entropy nothing is explored, and no gradient leads out of a policy that writes one thing.
    When it misfires: entropy falls in most runs that learn; with a reward at its best it is not reported. A low entropy
        from the start is the model's nature.
    What to do: lower the learning rate, raise the entropy bonus or the sampling temperature, raise the KL penalty, and go
        back to a checkpoint from before the fall.
    References: Cui et al. 2025, The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models.
    """

    __slots__ = ("floor", "share")
    type: ClassVar[str] = "entropy_collapse"
    tracker: ClassVar[str] = "policy"
    needs: ClassVar = (("entropy_mean",),)
    reads: ClassVar = ("reward_mean",)
    advice: ClassVar[str] = (
        "Go back before the fall; lower the learning rate, raise the entropy bonus, the temperature or the KL penalty."
    )
    persist: ClassVar[int] = 10
    clear: ClassVar[int] = 10
    settings: ClassVar = {
        "share": Setting(0.1, "share of its start below which the entropy counts as gone", least=0.0, most=1.0),
        "floor": Setting(0.02, "nats at the start below which there is nothing to lose", least=0.0),
    }
    share: float
    floor: float

    def check(self, view: View) -> Finding | None:
        entropy = view.get("entropy_mean")
        if entropy.n < 10 or entropy.level >= self.share * entropy.start or entropy.start < self.floor:
            return None
        reward = view.get("reward_mean")
        if reward.ready and reward.level > reward.start and reward.level > reward.high - self._allowance(view):
            return None
        severity = "critical" if reward_has_fallen(view) else "warning"
        message = (
            f"Entropy fell from {entropy.start:.3g} to {entropy.level:.3g} nats a token, and the reward is not at its best."
        )
        return Finding(
            severity,
            entropy.level,
            self.share * entropy.start,
            message,
            {"entropy_start": entropy.start, "entropy": entropy.level},
        )

    @staticmethod
    def _allowance(view: View) -> float:
        """How far below its best a reward may be and still count as good: a fifth of what was gained, or its noise."""
        reward = view.get("reward_mean")
        return max(0.2 * (reward.high - reward.start), 2.0 * reward.high_spread, 0.05 * abs(reward.high))
