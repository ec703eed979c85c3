"""The course of the reward: its best, what was lost since, and whether the reward itself was changed."""

from __future__ import annotations

from math import inf, nan
from statistics import median
from typing import TYPE_CHECKING

from rldk.core.stats.base import NOISE_PER_STEP, Statistic
from rldk.core.stats.slope import least_squares
from rldk.signals.series import EARLY, RECENT, Series

if TYPE_CHECKING:
    from rldk.signals.view import View

__all__ = ["CHANNELS", "COMPONENT", "SCORES", "SLOW_NOISE", "RewardSignal", "rounding_of", "score_of"]

SCORES = ("reward_mean", "accuracy")
"""What is optimised: the reward, or the share of right answers if no reward is logged."""
CHANNELS = ("kl_mean", "entropy_mean", "rollout_length_mean")
"""Channels of the policy besides the reward: if they stay, the policy has not changed."""
COMPONENT = "reward_function_mean/"
"""How the mean of each reward function is named."""
JUMP = 6.0  # times its noise by which the reward changes from one row to the next when its definition changes
STILL = 4.0  # times its noise by which a channel of the policy may move during the jump
AFTER_JUMP = 50  # rows for which other quantities may follow a changed reward
HELD = 3  # rows for which a level must hold to be the best
CONFIRM = 4  # rows for which a jump must last to be confirmed
AT_ONCE = 0.75  # share of a jump that must happen from one row to the next; a fall over three rows is not a jump
MOST_STEPS = 2.0  # steps per row within which a policy cannot have learnt from a changed reward
WORST = 3.0  # spreads below the mean at which the worst responses of a batch are: a share of 0.9 has its zeros there
RESPONSES = 64  # per row, where neither they nor their spread are logged: a row's noise is the spread over the root of that
ROUNDING, ADDED = 2e-7, 1e-7  # share of a reward: two units of single precision; and what trainers add to a spread of zero
SLOW_NOISE = 0.16  # share of a row's spread that the mean over about twenty rows still has


def score_of(view: View) -> Series:
    """The series of what is optimised."""
    reward = view.get("reward_mean")
    return reward if reward.n else view.first(*SCORES)


def rounding_of(view: View) -> float:
    """The spread that equal rewards of this size may have, by rounding or by what is added to it."""
    score = score_of(view)
    return max(ROUNDING * max(abs(score.first), abs(score.level)), ADDED) if score.n else ADDED


class RewardSignal(Statistic):
    """Best, fall and jumps of the reward. Nothing here depends on the zero or the scale of the reward.

    - `best` is the highest median of five rows that was held for three, and `noise` that of a row at that time, or later
      while the reward was near it.
    - `dip` is the deepest fall below the best from which the run has recovered: a fall that is no deeper may pass again.
    - `best_slow` and `noise_slow` are the same for a mean over about twenty rows, for rewards whose single rows are too noisy.
    - `shift` is the sum of jumps of the reward that the policy did not cause: the reward of one row differs from the
      previous rows by six times its noise and stays there, while KL, entropy and length do not change. Best and start are
      shifted along, so that an offset is not a fall. `jump` is the last of them, `jump_index` its row and `jump_step` its step.
    - `flipped` is the row of a jump to minus the previous value, and `respread` the factor by which the spread between
      responses changed with the jump: an offset does not change it, and a new scale changes it by the same factor as the level,
      which is `relevel`. If no offset explains a jump down, `undone` is the level below which that holds; else it is NaN. It
      leads to a level that responses had before, between the start and the best or among the worst of a batch, as if what was
      learnt had been lost, or the reward is a share, which an offset would lead out of its range.
    - `spread` is the exponentially weighted mean distance of a row from the slow mean, which includes slow swings but counts a
      steady rise as noise. `swing` is the mean distance of rows five apart: for independent rows it equals the roughness, and
      slow swings make it larger.
    - `trend` is the t value of a straight line through all rows: below 2 it is no more than chance explains; infinite where
      they lie on it. `rise` is by how much it rises from the first row to the last. Both are NaN for fewer than ten rows.
    """

    __slots__ = (
        "_before", "_channels", "_fall", "_levels", "_m2", "_mean", "_measured", "_n", "_oldest", "_rows", "_since",
        "_spread", "_step", "_sxy", "best", "best_slow", "dip", "flipped", "jump", "jump_index", "jump_step", "noise",
        "noise_slow", "relevel", "respread", "rise", "shift", "spread", "start", "swing", "trend", "undone",
    )  # fmt: skip
    best: float
    noise: float
    best_slow: float
    dip: float
    _fall: float
    noise_slow: float
    start: float
    spread: float
    swing: float
    trend: float
    rise: float
    shift: float
    jump: float
    jump_index: int
    jump_step: int
    flipped: int
    relevel: float
    respread: float
    undone: float
    _spread: float
    _oldest: float
    _measured: int
    _before: list[float]
    _channels: list[float]
    _levels: list[float]
    _rows: list[float]
    _since: int
    _step: int
    _n: int
    _mean: float
    _m2: float
    _sxy: float

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.best = self.best_slow = -inf
        self.noise = self.noise_slow = self.dip = self._fall = 0.0
        self.start = self.jump = self.trend = self.rise = nan
        self.shift, self.relevel, self.respread, self._spread = 0.0, nan, 1.0, nan
        self.jump_index = self.flipped = self._since = -1
        self.jump_step = self._step = 0
        self.undone = nan
        self.spread = self.swing = 0.0
        self._oldest = nan
        self._n = self._measured = 0
        self._mean = self._m2 = self._sxy = 0.0
        self._before, self._channels, self._levels, self._rows = [], [], [], []

    def update(self, view: View) -> None:
        """Take the event of `view` into account, after its series were updated."""
        series = score_of(view)
        if series.index != view.index or not series.n or series.nonfinite_run:
            return
        if series.n != self._measured:  # more of the same event need not have a reward
            self._measure_spread(series)
        if series.n == RECENT:
            self.start = series.start
        if self._since >= 0:
            self._follow_jump(view, series)
        elif series.n > RECENT:
            self._look_for_jump(view, series)
        self._before = [series.level, series.noise, series.slow, series.last]
        get = view.get
        kl, entropy, length = get("kl_mean"), get("entropy_mean"), get("rollout_length_mean")
        self._channels = [  # in the order of CHANNELS
            kl.level, kl.noise, kl.last, entropy.level, entropy.noise, entropy.last, length.level, length.noise, length.last,
        ]  # fmt: skip
        self._spread = get("reward_std").level
        if self._since < 0:
            self._add_to_trend(series.last - self.shift)
            if series.ready:
                self._take_best(series)

    def noise_of(self, series: Series) -> float:
        """The noise of a row: from one to the next, or over five rows where neighbours are correlated."""
        return max(series.noise, NOISE_PER_STEP * self.swing)

    def sure_trend(self, series: Series) -> float:
        """The trend, with correlated rows counted as fewer."""
        noise = self.noise_of(series)
        return self.trend * (series.noise / noise if series.noise > 0.0 else 1.0)

    def _measure_spread(self, series: Series) -> None:
        n, value = series.n, series.last
        if n == 1:
            self.spread = self.swing = 0.0
        else:
            slow = self._before[2]
            self.spread += 0.05 * (1.2533 * abs(value - slow) - self.spread)
        if n > EARLY:
            self.swing += 0.04 * (abs(value - self._oldest) - self.swing)
        elif n > RECENT:
            self.swing += (abs(value - self._oldest) - self.swing) / (n - RECENT)
        self._measured, self._oldest = n, series.values()[0]

    def _add_to_trend(self, value: float) -> None:
        self._n = n = self._n + 1
        before = self._mean
        self._mean = mean = before + (value - before) / n
        self._m2 += (value - before) * (value - mean)
        self._sxy += 0.5 * (n - 1) * (value - before)
        if n >= 2 * RECENT:
            slope, self.trend = least_squares(n, n * (n * n - 1) / 12.0, self._sxy, self._m2)
            self.rise = slope * (n - 1)

    def _take_best(self, series: Series) -> None:
        self._levels = [*self._levels[1 - HELD :], series.level]
        held, noise = min(self._levels), self.noise_of(series)
        if held > self.best and (len(self._levels) == HELD or self.best == -inf):
            self.best, self.noise = held, noise
            self.dip = max(self.dip, self._fall)  # it fell that far and recovered
            self._fall = 0.0
        elif noise > self.noise and self.best - min(series.level, series.last) < max(0.3 * self.gain, 3.0 * self.noise):
            self.noise = noise  # a best of the first rows has a poor noise estimate
        self._fall = max(self._fall, self.best - series.level) if self.best > -inf else 0.0
        if self.best - series.level < 0.4 * self._fall:
            self.dip, self._fall = max(self.dip, self._fall), 0.0
        if series.n >= 2 * RECENT and series.slow > self.best_slow and not self.was_changed(series.index):
            memory = min(max(self.swing / series.roughness, 1.0), 3.0) if series.roughness > 0.0 else 1.0
            spread = self.spread / (1.0 - 0.95 ** (series.n - 1))  # which began at 0
            self.best_slow, self.noise_slow = series.slow, SLOW_NOISE * memory * spread

    def _look_for_jump(self, view: View, series: Series) -> None:
        """Whether a jump starts: the responses of this row were sampled before the policy could learn from a new reward."""
        level, noise, slow, before = self._before
        size = abs(series.last - level)
        if not size > JUMP * noise > 0.0 or not size > 0.4 * (series.high - series.low):
            return
        if abs(series.last - slow) < 0.25 * size:
            return  # recovery from a dip of a few rows, which the median still shows
        if view.steps_per_row > MOST_STEPS or abs(series.last - before) < max(AT_ONCE * size, JUMP * noise):
            return  # it took several rows or updates, from which the policy may have learnt, or rows swing as far by chance
        if series.n > 2 * RECENT and self._policy_stayed(view):
            self._since, self._step = view.index, view.step
            self._rows = [level, noise, self._spread, series.last]

    def _follow_jump(self, view: View, series: Series) -> None:
        """Wait until it is clear whether a jump lasts."""
        self._rows.append(series.last)
        level, noise, spread, *after = self._rows
        if len(after) < CONFIRM:
            return
        since, self._since = self._since, -1
        middle = median(after)
        if min((value - level) * (1.0 if middle > level else -1.0) for value in after) < 0.5 * JUMP * noise:
            return  # one of the rows is already back
        self.jump, self.jump_index, self.jump_step = middle - level, since, self._step
        lost = level - 0.4 * (level - self.start)
        apart = spread if spread > 0.0 else RESPONSES**0.5 * noise
        lowest = min(self.start - noise, level - WORST * apart)
        is_share = 0.0 <= series.low <= series.high <= 1.0  # an offset would lead out of its range
        self.undone = lost if middle < lost and (is_share or lowest < middle) else nan
        self.shift += self.jump
        self.best += self.jump
        self._levels = []
        self.best_slow = -inf  # the mean over many rows must follow first
        self.start += self.jump
        now = view.get("reward_std").level  # of five rows, most of them since the jump
        if spread != spread and max(after) - min(after) < 0.1 * noise:  # not logged; the rows themselves hardly differ any more
            spread, now = noise, max(after) - min(after)
        self.respread = now / spread if spread > 0.0 and now == now else 1.0
        self.relevel = middle / level if abs(level) > 5.0 * noise else nan
        if abs(level) > 5.0 * noise and abs(middle + level) < 0.25 * abs(level) + 2.0 * noise:
            self.flipped = since

    def _policy_stayed(self, view: View) -> bool:
        """Whether KL, entropy and length, as far as logged, did not change; unknown with fewer than two of them."""
        known = 0
        for place, name in enumerate(CHANNELS):
            level, noise, last = self._channels[3 * place : 3 * place + 3]
            now = view.get(name).last
            if level != level or now != now or level == now == 0.0:
                continue  # what stays 0 may not be measured
            known += 1
            most = max(STILL * noise, 0.15 * abs(level))
            drifts = abs(now - last) <= most and abs(last - level) <= 2.0 * most  # it was on its way before
            if abs(now - level) > most and not drifts:
                return False
        return known > 1  # one channel may stay by chance

    @property
    def settled(self) -> bool:
        """Whether no jump is being examined."""
        return self._since < 0

    @property
    def gain(self) -> float:
        """By how much the best is above the start."""
        return self.best - self.start

    def lost(self, series: Series) -> float:
        """By how much the level is below its best; 0 before there is one, and while a jump is being examined."""
        return max(self.best - series.level, 0.0) if self._since < 0 and self.best > -inf else 0.0

    def lost_slow(self, series: Series) -> float:
        """The same for the mean over about twenty rows."""
        return max(self.best_slow - series.slow, 0.0) if self._since < 0 and self.best_slow > -inf else 0.0

    @staticmethod
    def is_solved(series: Series) -> bool:
        """Whether a share of right answers is close to 1."""
        return series.n > 0 and series.level >= 0.98 and series.high <= 1.0 + 1e-6

    def row_noise(self, series: Series) -> float:
        """The noise of a row: that at the best, or the current one if it has grown since, as after a change of scale."""
        return max(self.noise, 0.8 * series.noise, 1e-12)

    def improves(self, series: Series) -> bool:
        """Whether the reward thrives, or has an upward trend beyond chance that has not turned since."""
        rising = series.n >= 2 * RECENT and self.trend > 2.0 and self.lost(series) < 0.5 * self.gain
        least = 0.1 * (self.best_slow - self.start)  # of both means, since a dip that is over is still in the slow one
        turned = self.lost_slow(series) > max(least, 3.0 * self.noise_slow) and self.lost(series) > least
        return self.thrives(series) or (rising and not turned)

    def was_changed(self, index: int) -> bool:
        """Whether the reward itself was changed recently: what depends on its scale must settle again."""
        return 0 <= self.jump_index > index - AFTER_JUMP

    def thrives(self, series: Series) -> bool:
        """Whether the reward has risen beyond its noise and is near its best."""
        gain = self.gain
        if series.n < 2 * RECENT or not gain > 3.0 * self.noise:
            return False
        return self.lost(series) < max(0.25 * gain, 1.5 * self.noise)
