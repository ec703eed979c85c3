"""What kind of advantages a run logs: the mean and the spread of some carry no signal."""

from __future__ import annotations

from rldk.signals.view import View

__all__ = ["KIND", "at_its_best", "judges_mean", "whitened", "without_baseline"]

KIND = ("advantage_normalized", "advantage_raw", "advantage_mean", "advantage_std", "reward_mean")
"""The metrics that the functions here read."""
NEAR_ZERO, NEAR_ONE = 0.05, 0.15  # how far mean and spread of whitened advantages may be from 0 and 1


def whitened(view: View) -> bool:
    """Whether the logged advantages were whitened from the start, as the log says or as their first values show."""
    stated = view.get("advantage_normalized")
    if view.get("advantage_raw").last > 0.5:
        return False
    if stated.n:
        return stated.level > 0.5
    mean, std = view.get("advantage_mean"), view.get("advantage_std")
    if not abs(std.base - 1.0) < NEAR_ONE or not std.scale < NEAR_ZERO:
        return False
    return not mean.n or (abs(mean.base) < NEAR_ZERO and mean.scale < NEAR_ZERO)


def without_baseline(view: View) -> bool:
    """Whether the mean advantage is the mean reward itself, as verl logs it for GRPO without whitening."""
    mean, reward = view.get("advantage_mean"), view.get("reward_mean")
    near = 0.1 * max(abs(reward.level), abs(reward.base), reward.scale)
    return abs(mean.level - reward.level) <= near and abs(mean.base - reward.base) <= near


def judges_mean(view: View) -> bool:
    """Whether the mean of the advantages carries information in this run."""
    return not whitened(view) and not without_baseline(view)


def at_its_best(view: View) -> bool:
    """Whether the reward is at its best level so far: where nearly all succeed, the few failures are rightly outliers."""
    reward = view.get("reward_mean")
    near = 0.1 * abs(reward.high - reward.start) + view.reward.spread
    return reward.ready and reward.level > reward.start and reward.level > reward.high - near
