"""How the coefficient of the KL penalty follows the KL."""

from __future__ import annotations

from collections import deque
from math import inf, log, nan

from rldk.core.stats.base import Statistic, check_window
from rldk.core.stats.conditions import RollingShare
from rldk.core.stats.slope import RollingSlope

__all__ = ["KLController"]

TURN = 0.1  # relative change after which a reversal of the coefficient counts as one
SETTLED = 20  # KLs inside the range after which a new excursion has nothing to do with the last
CHANGE_RATE = 0.1
ROUNDING = 1e-9


class KLController(Statistic):
    """Follows the coefficient, and the side of its range on which the KL is.

    The adaptive controller (Ziegler et al. 2019, *Fine-Tuning Language Models from Human Preferences*) multiplies the
    coefficient by 1 + c · error after each batch. So it is the logarithm that moves in even steps, and the move that
    follows a KL outside of its range that tells whether it responds.
    """

    __slots__ = (
        "_before", "_change", "_count", "_direction", "_extreme", "_inside", "_log", "_peak", "_right", "_side",
        "_size", "_swing", "_turns", "adaptive", "coef", "outside", "overshoot", "unchanged", "window",
    )  # fmt: skip
    parameters = ("window",)
    window: int
    coef: float
    adaptive: bool
    unchanged: int
    outside: int
    overshoot: float
    _before: float
    _change: float
    _count: int
    _direction: int
    _extreme: float
    _inside: int
    _log: RollingSlope
    _peak: float
    _right: RollingShare
    _side: int
    _size: float
    _swing: int
    _turns: deque[int]

    def __init__(self, window: int) -> None:
        self.window = check_window("window", window, minimum=3)
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.coef = self._change = self._extreme = self._size = self.overshoot = nan
        self.adaptive = False
        self.unchanged = self.outside = self._count = self._direction = self._inside = self._side = self._swing = 0
        self._before = self._peak = 0.0
        self._log = RollingSlope(self.window)
        self._right = RollingShare(self.window)
        self._turns = deque(maxlen=self.window)

    def take_coef(self, coef: float) -> None:
        """Take the coefficient that was logged, before the KL of the same event: it was set by the one before."""
        self.coef = coef
        self._count += 1
        turns = self._turns
        if turns and self._count - turns[0] >= self.window:
            turns.popleft()
        if not 0.0 < coef < inf:
            return
        last, self._size = self._size, log(coef)
        size = self._size
        self._log.update(size)
        if last != last:
            self._extreme = size
            return
        change = size - last
        self._change = abs(change) if self._change != self._change else self._change + CHANGE_RATE * (abs(change) - self._change)
        if abs(change) > ROUNDING:
            self.adaptive = True
            self.unchanged = 0
            self._follow_turns(size)
        else:
            self.unchanged += 1
        if self._side:
            self._right.update(change * self._side > 0.0)

    def _follow_turns(self, size: float) -> None:
        away = size - self._extreme
        if away * self._direction > 0.0:
            self._extreme = size
        elif abs(away) > TURN:
            if self._direction:
                self._turns.append(self._count)
            self._direction = 1 if away > 0.0 else -1
            self._extreme = size

    def take_side(self, side: int, excursion: float) -> None:
        """Take where the KL is: 1 above its range, -1 below, 0 inside; and how far it is from the target."""
        self._side = side
        if not side:
            self.outside = 0
            self._inside += 1
            if self._inside == SETTLED and self._swing:
                self._swing, self._before, self._peak, self.overshoot = 0, 0.0, 0.0, 0.0
            return
        self.outside += 1
        self._inside = 0
        if side != self._swing:
            self._before, self._peak, self._swing = self._peak, 0.0, side
        if excursion > self._peak:
            self._peak = excursion
        self.overshoot = self._peak / self._before if self._before > 0.0 else 0.0

    @property
    def responsiveness(self) -> float:
        """Share of the moves after a KL outside of its range that went the right way; NaN for a fixed coefficient."""
        return self._right.share if self.adaptive else nan

    @property
    def oscillation(self) -> float:
        """(turns - 1) / (turns + 1) for the turns in the window, 0 for one or none; NaN for a fixed coefficient."""
        if not self.adaptive:
            return nan
        turns = len(self._turns)
        return (turns - 1) / (turns + 1) if turns > 1 else 0.0

    @property
    def change_rate(self) -> float:
        """Mean size of the coefficient's relative change, the latest counting most."""
        return self._change

    def trend(self) -> float:
        """Relative change of the coefficient from one value to the next."""
        return self._log.line()[2]
