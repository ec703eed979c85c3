"""The reward says nothing."""

from __future__ import annotations

from collections import deque
from itertools import groupby
from math import isfinite
from typing import ClassVar

from rldk.core.stats.quantiles import quantile_of_sorted
from rldk.detectors.base import Detector, Finding, Setting, View
from rldk.signals.series import Series

__all__ = ["DeadReward"]

ROWS = 10
ALIKE, FEW_ALIKE = 5, 3  # of ten rewards that are the same number: where nothing explains it, and where a cause shows
EXACT = 1e-4
SCORES = ("reward_mean", "accuracy")


class DeadReward(Detector):
    """The reward carries no signal: it does not vary, all groups score alike, or it is `None`.

    What it catches: a mean reward that has stayed within two percent of where it started (six, if a cause shows) and is
        the very same number again and again, or with a cause has not moved by its own noise either; with no spread
        between the responses where one is logged; a spread that was there and is gone while the reward is not
        at its best; a reward that comes out as `None`. Where no reward is logged, the share of right answers stands for it.
    Why it matters: no difference in reward, no gradient: every further step costs and teaches nothing.
    When it misfires: a hard task may score nothing for a while before the first success; that is a warning first, and
        critical only when it lasts, or when a cause shows (every response is cut off, none ends by itself, no advantage differs
        from another). A task that is solved has no spread either: a reward that has risen to its best is not dead, and one
        that is 1 from the start is a warning.
    What to do: score a few responses by hand; check that the answer can be parsed, that responses may end before the
        length limit, and that the reward tells better from worse for this model; take easier prompts to begin with.
    References: Yu et al. 2025, DAPO (dynamic sampling drops groups without spread).
    """

    __slots__ = ("_recent", "alike", "flat", "flat_rows", "jitter", "lasting", "none_rows", "soon")
    type: ClassVar[str] = "dead_reward"
    tracker: ClassVar[str] = "reward"
    needs: ClassVar = (SCORES,)
    watches: ClassVar = ()
    reads: ClassVar = (
        "reward_mean",
        "reward_std",
        "reward_group_std",
        "reward_zero_std_frac",
        "truncated_frac",
        "eos_count",
        "eos_frac",
        "advantage_std",
    )
    advice: ClassVar[str] = (
        "Score a few responses by hand: can the answer be parsed, may responses end before the length limit, does the reward "
        "tell better from worse? Begin with easier prompts."
    )
    persist: ClassVar[int] = 1
    settings: ClassVar = {
        "jitter": Setting(0.02, "share of its size within which it has not moved; thrice that with a cause", least=0, most=0.3),
        "soon": Setting(12, "rewards after which a dead one with a visible cause is critical", least=5),
        "lasting": Setting(40, "rewards after which it is critical without one", least=5),
    }
    jitter: float
    soon: float
    lasting: float
    flat_rows: int
    none_rows: int
    flat: bool
    alike: bool
    _recent: deque[float]

    def reset(self) -> None:
        super().reset()
        self.flat_rows = self.none_rows = 0
        self.flat = self.alike = False
        self._recent = deque(maxlen=ROWS)

    @classmethod
    def metrics(cls) -> tuple[str, ...]:
        return ()  # it must see the events in which the reward is not a number, too

    def check(self, view: View) -> Finding | None:
        event = view.event
        if event.nulls and "reward_mean" in event.nulls:
            self.none_rows += 1
            if self.none_rows >= 3:
                text = f"The reward has been None for {self.none_rows} rows."
                return Finding(
                    "critical" if self.none_rows >= 5 else "warning", float("nan"), 3.0, text, {"rows": self.none_rows}
                )
            return None
        value = event.metrics.get("reward_mean")
        if value is None and view.get("advantage_std").ready and not view.get("reward_mean").n:
            value = event.metrics.get("accuracy")
        if value is None:
            return self._still(view) if self.raised else None
        self.none_rows = 0
        if isfinite(value):
            self._recent.append(value)
        self.flat = flat = self._is_flat(view)
        self.flat_rows = self.flat_rows + 1 if flat else 0
        return self._still(view) if flat else None

    def _is_flat(self, view: View) -> bool:
        """Whether the last ten rewards are where the first were and no response differs from another."""
        reward = view.get("reward_mean")
        if not reward.n:
            reward = view.get("accuracy")
        spread = view.get("reward_std")
        if not spread.n:
            spread = view.get("reward_group_std")
        lost = spread.level < 1e-4 * spread.base
        if not lost:
            high, low = reward.high, reward.low
            moved = high - low
            if moved > 12e-6 and moved > 12.0 * self.jitter * (high if high > -low else -low):
                return False  # it has moved further than any room below allows for
        if len(self._recent) < ROWS:
            return False
        recent = sorted(self._recent)
        median = 0.5 * recent[4] + 0.5 * recent[5]
        seen = self.raised or self._cause(view)
        room = max(self.jitter * abs(median), 1e-6) * (3.0 if seen else 1.0)
        if quantile_of_sorted(recent, 0.9) - quantile_of_sorted(recent, 0.1) > room:
            return False
        exact = recent[-1] - recent[0] <= EXACT * abs(median) + 1e-6
        self.alike = exact or _most_alike(recent) >= (FEW_ALIKE if seen else ALIKE) or (spread.ready and lost)
        if not self.alike and not seen:
            return False  # small beside its size, yet it varies: a reward may have any zero
        if spread.ready and spread.level > 0.05 * abs(median) + 1e-6 and spread.level > 0.02 * spread.base:
            return False
        never_moved = abs(median - reward.start) <= 2 * room and reward.high - reward.low <= 4 * room
        lost = lost and spread.ready and recent[-1] - recent[0] <= 1e-4 * reward.scale
        return never_moved or (lost and median < reward.high - 0.5 * reward.scale)

    def _still(self, view: View) -> Finding | None:
        if not self.flat:
            return None
        rows = self.flat_rows + 9
        cause = self._cause(view)
        lasting = view.rows(self.lasting, 20)
        if rows < self.soon or (not cause and rows < lasting // 2):
            return None
        median = sorted(self._recent)[ROWS >> 1]
        solved = abs(median - 1.0) < 1e-6  # nothing to learn, since all is right
        lasts = rows >= lasting
        dead = (cause or lasts) if self.alike else (cause and lasts and _is_still(view.first(*SCORES)))
        severity = "critical" if dead and not solved else "warning"
        alike = ", and no response scores better than another" if view.first("reward_std", "reward_group_std").n else ""
        why = f"; {cause}" if cause else ""
        message = f"The reward has not moved from {median:.4g} for {rows} rows{alike}{why}."
        return Finding(severity, median, self.jitter, message, {"reward": median, "rows": rows})

    @staticmethod
    def _cause(view: View) -> str:
        cut, count, share = view.get("truncated_frac"), view.get("eos_count"), view.get("eos_frac")
        if cut.ready and cut.level >= 0.98 and cut.start >= 0.98:
            return "every response is cut off at the length limit"
        if (count.ready and count.level == 0.0 and count.high == 0.0) or (
            share.ready and share.level <= 0.02 and share.high <= 0.05
        ):
            return "no response ends by itself"
        advantages = view.get("advantage_std")
        if advantages.ready and advantages.level == 0.0:
            return "no advantage differs from another"
        return ""


def _is_still(reward: Series) -> bool:
    """Whether it has not moved by its own noise either."""
    return abs(reward.slow - reward.base) <= reward.scale


def _most_alike(ordered: list[float]) -> int:
    """How many of the values are the same number, at most."""
    return max(sum(1 for _ in group) for _, group in groupby(ordered))
