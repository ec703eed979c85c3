"""The reward has fallen and stays down."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from rldk.core.detector import Detector, Finding, Setting, View
from rldk.core.series import EARLY, Series

__all__ = ["PolicyCollapse", "reward_has_fallen", "signs_of_damage"]

LONG = 2.5  # times the noise by which a fall stands out that has lasted


def reward_has_fallen(view: View, share: float = 0.5, noises: float = 4.0) -> bool:
    """Whether the reward has lost a share of its best level, and more than its own noise: what others corroborate by."""
    reward = view.get("reward_mean")
    if reward.n < 8:
        return False
    drop = reward.high - reward.level
    if not drop > share * max(abs(reward.high), reward.high - reward.start):
        return False
    noise = reward.high_spread
    return drop > noises * max(noise, min(reward.scale, 3.0 * noise))  # a steep start is no noise


class PolicyCollapse(Detector):
    """The reward has lost most of its best level and does not come back.

    What it catches: the median of the last five rewards is below half of the best such median (or has lost half of what
        was gained), by more than four times the run's own noise, and stays there; by two and a half times, if it has stayed
        there for long.
    Why it matters: a policy that has fallen off its optimum seldom climbs back: what it samples now is what it learns from.
    When it misfires: deep dips that recover within a few rows are normal and are waited out; a change of the data (a
        curriculum) may lower the reward for good, which is a warning until another sign of damage comes with it.
    What to do: stop, go back to the checkpoint before the fall, lower the learning rate or raise the KL penalty, and read
        samples from both sides of the fall.
    References: Gao et al. 2023, Scaling Laws for Reward Model Overoptimization.
    """

    __slots__ = ("best", "deep", "lasting", "lost", "share")
    type: ClassVar[str] = "policy_collapse"
    tracker: ClassVar[str] = "reward"
    needs: ClassVar = (("reward_mean",),)
    reads: ClassVar = ("entropy_mean", "truncated_frac", "rollout_length_mean", "kl_mean", "reward_std", "reward_zero_std_frac")
    advice: ClassVar[str] = (
        "Go back to the checkpoint before the fall; lower the learning rate or raise the KL penalty; read samples."
    )
    persist: ClassVar[int] = 3
    settings: ClassVar = {
        "share": Setting(0.5, "share of the best reward that must be lost", least=0.1, most=1.0),
        "deep": Setting(0.75, "share beyond which a lasting fall is critical without another sign", least=0.1, most=1.0),
        "lasting": Setting(25, "rewards for which a fall without another sign must last; twice that to be critical", least=8),
    }
    share: float
    deep: float
    lasting: float
    lost: int
    best: float

    def reset(self) -> None:
        super().reset()
        self.lost = 0
        self.best = -inf

    def check(self, view: View) -> Finding | None:
        reward = view.get("reward_mean")
        if reward.n >= EARLY and reward.slow > self.best:
            self.best = reward.slow
        if not reward_has_fallen(view, self.share, LONG):
            self.lost = 0
            return None
        self.lost += 1
        signs = signs_of_damage(view)
        if reward_has_fallen(view, self.share):
            patience = max(8.0, min(self.lasting, 0.2 * reward.n))  # a short log has few rows, each of many steps
        elif self._slow_mean_has_fallen(reward):
            patience, signs = self.lasting, []
        else:
            return None
        lasting = self.lost >= 2 * patience and reward_has_fallen(view, self.deep, LONG)
        if self.lost < patience and not signs:
            return None
        severity = "critical" if signs or lasting else "warning"
        also = f", while {' and '.join(signs)}" if signs else ""
        message = f"Reward fell from {reward.high:.4g} to {reward.level:.4g} and has stayed down for {self.lost} rows{also}."
        threshold = reward.high - self.share * max(abs(reward.high), reward.high - reward.start)
        return Finding(
            severity, reward.level, threshold, message, {"best": reward.high, "reward": reward.level, "rows_down": self.lost}
        )

    def _slow_mean_has_fallen(self, reward: Series) -> bool:
        """Whether the mean over some twenty rows has lost its share too, which single rows of 0 and 1 hardly move."""
        return self.best - reward.slow > self.share * max(abs(self.best), self.best - reward.start)


def signs_of_damage(view: View) -> list[str]:
    """What else has left its range since the start, in words."""
    signs = []
    entropy = view.get("entropy_mean")
    if entropy.ready and entropy.level > max(3.0 * entropy.start, entropy.start + 0.5):
        signs.append("entropy has risen")
    elif entropy.ready and entropy.start > 0 and entropy.level < 0.1 * entropy.start:
        signs.append("entropy has collapsed")
    cut = view.get("truncated_frac")
    if cut.ready and cut.level > max(0.8, 2.0 * cut.start):
        signs.append("responses run to the length limit")
    length = view.get("rollout_length_mean")
    if length.ready and length.start > 0 and not 0.2 < length.level / length.start < 4.0:
        signs.append("response length has left its range")
    spread = view.get("reward_std")
    if spread.ready and spread.level < 0.02 * spread.base:
        signs.append("the rewards' spread is gone")
    kl = view.get("kl_mean")
    if kl.ready and kl.level > (50.0 if view.reductions.get("kl_mean") == "sequence" else 1.0) and kl.level > 5.0 * abs(kl.start):
        signs.append("KL has exploded")
    return signs
