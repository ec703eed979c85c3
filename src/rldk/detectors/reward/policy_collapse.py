"""The reward has fallen and stays down."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from rldk.core.anomaly import Anomaly
from rldk.detectors.base import Detector, Finding, Setting, View
from rldk.detectors.reward.course import CHANNELS, AtBest, reward_has_fallen, signs_of_damage, signs_since_first
from rldk.signals.lagged_level import QUICK, SLOW, LaggedLevel
from rldk.signals.series import EARLY, RECENT, Series

__all__ = ["PolicyCollapse"]

OPENING = 2  # rows that tell where a run began, in which all is lost before there is a median of five
SHORT = 60  # rows of a log in which a mean over twenty of them comes too late
SURE = 1.0  # times the noise by which a mean of twenty rows is below another, where there is another sign
ALONE = 4.0  # times the noise by which a fall stands out without having lasted, or another sign


class PolicyCollapse(Detector):
    """The reward has lost most of its best level and does not come back.

    What it catches: the median of the last five rewards is below half of the best such median (or has lost half of what
        was gained), by more than four times the run's own noise, and stays there; by two and a half times, if it has stayed
        there for long, or if another sign of damage has come with it. Also three quarters of what the first two rows had,
        lost for good within the first five, with another sign of damage since the first row. Where rows differ too much for
        that, a mean over some twenty of them that has lost half of its best for as long.
    Why it matters: a policy that has fallen off its optimum seldom climbs back: what it samples now is what it learns from.
    When it misfires: deep dips that recover within a few rows are normal and are waited out; a change of the data (a
        curriculum) may lower the reward for good, which is a warning until the reward is below its start for long, or
        another sign of damage comes with it. What stood so when the reward was at its best is no such sign.
    What to do: stop, go back to the checkpoint before the fall, lower the learning rate or raise the KL penalty, and read
        samples from both sides of the fall.
    References: Gao et al. 2023, Scaling Laws for Reward Model Overoptimization.
    """

    __slots__ = (
        "_at_best", "_fell", "_good_before", "_length", "_low", "_opening", "best", "best_noise", "deep", "lasting", "lost",
        "share",
    )  # fmt: skip
    type: ClassVar[str] = "policy_collapse"
    tracker: ClassVar[str] = "reward"
    needs: ClassVar = (("reward_mean",),)
    reads: ClassVar = CHANNELS
    advice: ClassVar[str] = (
        "Go back to the checkpoint before the fall; lower the learning rate or raise the KL penalty; read samples."
    )
    persist: ClassVar[int] = 7
    least_rows: ClassVar[int] = 3
    settings: ClassVar = {
        "share": Setting(0.5, "share of the best reward that must be lost", least=0.1, most=1.0),
        "deep": Setting(0.75, "share beyond which (or below the start) a lasting fall is critical", least=0.1, most=1.0),
        "lasting": Setting(25, "rewards for which a fall without another sign must last; twice that to be critical", least=8),
    }
    share: float
    deep: float
    lasting: float
    lost: int
    best: float
    best_noise: float
    _at_best: AtBest
    _length: LaggedLevel
    _low: int
    _opening: float
    _fell: int
    _good_before: int | None

    def reset(self) -> None:
        super().reset()
        self._at_best = AtBest(len(CHANNELS))
        self._length = LaggedLevel()
        self._fell, self._good_before = -1, None
        self.lost = self._low = 0
        self._opening = inf
        self.best = -inf
        self.best_noise = 0.0

    def check(self, view: View) -> Finding | None:
        reward = view.get("reward_mean")
        n, high = reward.n, reward.high
        if n % QUICK == 0 or n % SLOW == 0:
            self._length.read(n, view.get("rollout_length_mean").level)
        if reward.high_index != self._at_best.seen:
            self._at_best.update(view, *CHANNELS)
        if reward.slow > self.best and n >= EARLY:
            self.best, self.best_noise = reward.slow, reward.spread
        if n <= OPENING:
            self._opening = min(self._opening, reward.last)
        if self.best - reward.slow <= self.share * abs(self.best) or not self._slow_mean_has_fallen(reward, SURE):
            self._low = 0
        else:
            self._low += 1
        if high - reward.level <= self.share * abs(high) or not reward_has_fallen(view, self.share):
            self.lost = 0
            if self._low >= self.lasting:
                return self._low_on_average(view, reward)
            return self._fallen_at_once(view, reward) if self._opening > high else None
        self.lost += 1
        if self.lost == 1:
            self._fell, self._good_before = view.index, view.earlier_step
        signs = signs_of_damage(view, self._at_best, self._length.before())
        if signs or reward_has_fallen(view, self.share, ALONE):
            patience = max(8.0, min(self.lasting, 0.2 * reward.n))  # a short log has few rows, each of many steps
        elif self._slow_mean_has_fallen(reward):
            patience = self.lasting
        else:
            return None
        if self.lost < patience + self.least_rows - view.rows(self.wait, self.least_rows) and not signs:
            return None  # what is left of the patience, `persist` waits for
        worse = reward_has_fallen(view, self.deep) or reward.level < reward.start - reward.high_spread
        lasting = self.lost >= 2 * patience and worse and (reward.n < SHORT or self._slow_mean_has_fallen(reward))
        severity = "critical" if signs or lasting else "warning"
        also = f", while {' and '.join(signs)}" if signs else ""
        message = f"Reward fell from {reward.high:.4g} to {reward.level:.4g} and has stayed down for {self.lost} rows{also}."
        threshold = reward.high - self.share * max(abs(reward.high), reward.high - reward.start)
        return Finding(
            severity, reward.level, threshold, message, {"best": reward.high, "reward": reward.level, "rows_down": self.lost}
        )

    def _low_on_average(self, view: View, reward: Series) -> Finding | None:
        """A reward whose rows differ so much that only its mean shows the fall: one question a row, right or wrong."""
        signs = signs_of_damage(view, self._at_best, self._length.before())
        if not signs and not self._slow_mean_has_fallen(reward):
            return None
        self._fell, self._good_before = view.index - self._low, None
        severity = "critical" if signs or self._low >= 2 * self.lasting else "warning"
        also = f", while {' and '.join(signs)}" if signs else ""
        fell = f"fell from {self.best:.4g} to {reward.slow:.4g}"
        message = f"The mean reward {fell} and has stayed down for {self._low} rows{also}."
        evidence = {"best": self.best, "reward": reward.slow, "rows_down": self._low}
        return Finding(severity, reward.slow, (1.0 - self.share) * self.best, message, evidence)

    def _fallen_at_once(self, view: View, reward: Series) -> Finding | None:
        """Whether all was lost within the first rows, before there was a median of five, and never came back."""
        opening, best = self._opening, reward.high
        noise = 5.0 * min(reward.scale, reward.roughness)  # each has the fall itself in it, and the second forgets it
        if reward.n < 2 * RECENT or not opening - best > max(self.deep * abs(opening), noise):
            return None
        signs = signs_since_first(view)
        if not signs:
            return None
        self._fell, self._good_before = reward.high_index, None
        level, limit = reward.level, opening - self.deep * abs(opening)
        message = f"Reward fell from {opening:.4g} or more to {level:.4g} within the first rows, while {' and '.join(signs)}."
        return Finding("critical", level, limit, message, {"best": opening, "reward": level})

    def _anomaly(self, view: View, finding: Finding) -> Anomaly:
        """It is since the reward fell, however long that was waited out."""
        anomaly = super()._anomaly(view, finding)
        anomaly.since, anomaly.last_good_step = self._fell, self._good_before
        return anomaly

    def _slow_mean_has_fallen(self, reward: Series, noises: float = 1.5) -> bool:
        """Whether the mean over some twenty rows has lost its share too, which single rows of 0 and 1 hardly move."""
        drop = self.best - reward.slow
        return drop > max(self.share * abs(self.best), self.share * (self.best - reward.start), noises * self.best_noise)
