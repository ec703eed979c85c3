"""The course of the reward, as rules of all families look at it: fallen, thriving, and what else moved since its best."""

from __future__ import annotations

from math import nan

from rldk.core.stats.base import Statistic
from rldk.detectors.base import View
from rldk.signals.series import EARLY

__all__ = [
    "CHANNELS", "AtBest", "reward_has_fallen", "reward_has_risen", "reward_thrives", "signs_of_damage", "signs_since_first",
]  # fmt: skip

CHANNELS = ("entropy_mean", "truncated_frac", "rollout_length_mean", "reward_std", "kl_mean")
"""What `signs_of_damage` looks at beside the reward, in its order."""


def reward_has_fallen(view: View, share: float = 0.5, noises: float = 2.5) -> bool:
    """Whether the reward has lost a share of its best level, and more than its own noise: what others corroborate by."""
    reward = view.get("reward_mean")
    if reward.n < 8:
        return False
    drop = reward.high - reward.level
    if not drop > share * max(abs(reward.high), reward.high - reward.start):
        return False
    noise = reward.high_spread
    early = reward.scale if reward.n >= EARLY else min(reward.scale, 3.0 * noise)  # of a few rows, the fall may be half
    return drop > noises * max(noise, early)


def reward_thrives(view: View) -> bool:
    """Whether the reward has risen well above its start and is near its best: what changed meanwhile served it."""
    reward = view.get("reward_mean")
    gain, noise = reward.high - reward.start, reward.high_spread
    if reward.n < 10 or not gain > max(2.0 * noise, 0.1 * abs(reward.start)):
        return False
    return reward.high - reward.level < max(0.2 * gain, noise)


def reward_has_risen(view: View) -> bool:
    """Whether the reward is above its start by its early noise, or half as much again where that is little beside its size."""
    reward = view.get("reward_mean")
    return reward.ready and reward.level > reward.start + max(reward.scale, min(0.05 * abs(reward.start), 1.5 * reward.scale))


class AtBest(Statistic):
    """Where other metrics stood when the reward was last at its best; what they were then did it no harm.

    To be updated when the reward's `high_index` is not the one last `seen`.
    """

    __slots__ = ("levels", "seen")
    seen: int
    levels: list[float]

    def __init__(self, count: int) -> None:
        self.levels = [nan] * count
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.seen = -1
        self.levels = [nan] * len(self.levels)

    def update(self, view: View, *names: str) -> None:
        """The reward has a new best: take down how the others stand."""
        self.seen = view.get("reward_mean").high_index
        self.levels = [view.get(name).level for name in names]


def signs_of_damage(view: View, at_best: AtBest | None = None, length_before: float = nan) -> list[str]:
    """What else has left its range since the start, in words; and since the reward was at its best, where that is known.

    An entropy or a length that changed while the reward thrives is no damage: it is how models learn to reason. Nor is a
    length that was the same long before.
    """
    entropy, cut, length, spread, kl = (view.get(name) for name in CHANNELS)
    entropy_then, cut_then, length_then, spread_then, kl_then = at_best.levels if at_best else (nan,) * len(CHANNELS)
    thrives = reward_thrives(view)
    signs = []
    if entropy.ready and entropy.level > max(3.0 * entropy.start, entropy.start + 0.5) and not entropy.level < 2.0 * entropy_then:
        signs.append("entropy has risen")
    elif entropy.ready and 0.0 <= entropy.level < 0.1 * entropy.start and not thrives and not entropy.level > 0.5 * entropy_then:
        signs.append("entropy has collapsed")
    if cut.ready and cut.level > max(0.8, 2.0 * cut.start) and not cut.level < cut_then + 0.2:
        signs.append("responses run to the length limit")
    usual, now = (length.start, length.base), length.level
    strayed = length.ready and (now < 0.2 * min(usual) or now > 4.0 * max(usual))
    if strayed and not thrives and not any(0.6 * then < now < 1.6 * then for then in (length_then, length_before)):
        signs.append("response length has left its range")
    gone = spread.ready and spread.level < 0.02 * spread.base and spread.slow < 0.5 * spread.base  # small batches touch 0
    if gone and not spread.level > 0.2 * spread_then:
        signs.append("the rewards' spread is gone")
    limit = 50.0 if view.reductions.get("kl_mean") == "sequence" else 1.0
    if kl.ready and kl.level > max(limit, 5.0 * abs(kl.start)) and not kl.level < 2.0 * kl_then:
        signs.append("KL has exploded")
    return signs


def signs_since_first(view: View) -> list[str]:
    """What else was lost since the first row: where that happens at once, a start that is a median of five is lost too."""
    entropy, cut, _, spread, kl = (view.get(name) for name in CHANNELS)
    signs = []
    if entropy.level > max(3.0 * entropy.first, entropy.first + 0.5):
        signs.append("entropy has risen")
    elif 0.0 <= entropy.level < 0.1 * entropy.first:
        signs.append("entropy has collapsed")
    if cut.level > 0.8 and cut.first < 0.4:
        signs.append("responses run to the length limit")
    if spread.level < 0.1 * spread.first:
        signs.append("the rewards' spread is gone")
    if kl.level > max(50.0 if view.reductions.get("kl_mean") == "sequence" else 1.0, 5.0 * abs(kl.first)):
        signs.append("KL has exploded")
    return signs
