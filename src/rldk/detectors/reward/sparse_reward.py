"""Hardly any response earns anything."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from math import inf, isfinite
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.reward import rounding_of
from rldk.signals.series import EARLY

__all__ = ["SparseReward"]

SPREADS = ("reward_std", "reward_zero_std_frac")
EVERY = 5
MIN_ROWS = 30  # rows needed in a log in which a row stands for several steps
LUCK = 1  # rows by which the later half may be better by chance alone
NOTHING, STILL_NOTHING = 0.6, 0.5  # share of the rows without any success, and of the later half of them
STAYS = 25  # updates for which it must last to be critical


class SparseReward(Detector):
    """In nearly every row all responses have the lowest reward, and that does not change.

    What it catches: of the last 80 mean rewards (fewer where a row stands for several steps, at least 30) three quarters are
        exactly the lowest value ever seen, and the later half is no better than the earlier one. If the log also says that
        nine of ten groups have no spread, 40 rewards are enough, and another 20 make it critical. If the spread between
        responses is logged, 30 rows are enough of which three in five have the lowest reward and no spread, and it is critical if
        that lasts.
    Why it matters: a batch in which all responses score the same has no gradient apart from noise and the KL penalty: the
        run costs the same and learns nothing but to stay near the reference.
    When it misfires: a hard task may start like this and take off after the first successes; as soon as they become more
        frequent the detector is silent. A log with one episode per row has many rows without reward in healthy runs too. A
        reward that is the same number in all rows is `dead_reward`.
    What to do: start with easier prompts, sample more responses per prompt, give partial credit, or train on solutions first.
    References: Yu et al. 2025, DAPO (dynamic sampling drops groups without spread).
    """

    __slots__ = ("_found", "_nothing", "_recent", "_rows", "_worst_reward", "alike", "rows", "share")
    type: ClassVar[str] = "sparse_reward"
    family: ClassVar[str] = "reward"
    needs: ClassVar = (("reward_mean",),)
    panels: ClassVar = ("reward", "losses")
    reads: ClassVar = SPREADS
    advice: ClassVar[str] = (
        "Start with prompts that the model solves sometimes, sample more responses per prompt, or give partial credit."
    )
    clear: ClassVar[int] = 20
    clauses: ClassVar = {
        "no_spread": Clause(
            "nearly all rows have the lowest reward, and groups have no spread", "critical",
            "definition: a group without spread has no gradient", persist=5, min_rows=5,
        ),
        "stays": Clause(
            "hardly any row has a success, and that has lasted for 25 updates more", "critical",
            "as `rarely_better` and `no_success`, which no sound run of the corpus or in public has even for a while",
            persist=STAYS, min_rows=STAYS // 2,
        ),
        "rarely_better": Clause(
            "three quarters of the rows have the lowest reward, and it does not get better", "warning",
            "tune split: 75 sound runs have at most 7 % of their rows at the lowest reward", persist=5, min_rows=5,
        ),
        "no_success": Clause(
            "in three rows of five no response earned anything", "warning",
            "definition: without a spread there is no gradient; sound runs of the corpus have at most 3 % of such rows",
            persist=5, min_rows=5,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "rows": Setting(80, "number of recent rewards that are judged", min=40, max=1000, whole=True),
        "share": Setting(0.75, "share of them that have the lowest reward", min=0.5, max=1.0),
        "alike": Setting(0.9, "share of groups without spread from which it is critical", min=0.5, max=1.0),
    }
    rows: float
    share: float
    alike: float
    _recent: deque[float]
    _nothing: deque[bool]
    _rows: int
    _worst_reward: float
    _found: bool

    def reset(self) -> None:
        super().reset()
        self._recent = deque(maxlen=int(self.rows))
        self._nothing = deque(maxlen=MIN_ROWS)
        self._rows = 0
        self._worst_reward = inf
        self._found = False

    def find(self, view: View) -> Sequence[Finding]:
        found = self._now(view)
        if found is None:
            return ()
        if found.clause == "no_spread" or not view.first(*SPREADS).n:
            return (found,)  # where no spread is logged, a row may be a single response
        return (found, replace(found, clause="stays"))

    def _now(self, view: View) -> Finding | None:
        reward = view.get("reward_mean")
        value = reward.last
        if not isfinite(value):
            return None
        self._recent.append(value)
        if value < self._worst_reward:
            self._worst_reward = value
            self._nothing.clear()
        self._nothing.append(value <= self._worst_reward and _is_without_spread(view))
        if reward.n % EVERY == 0:
            self._found = reward.level <= self._worst_reward and self._is_sparse(self._window(view), reward.high)
        if not self._found:
            self._rows = 0
            return self._no_success(view)
        self._rows += 1
        recent = list(self._recent)[-self._window(view) :]
        seen, better = len(recent), sum(one > self._worst_reward for one in recent)
        idle, alike = self._idle(view), view.get("reward_zero_std_frac")
        clause = "no_spread" if idle and self._rows >= 0.5 * seen else "rarely_better"
        also = f", and {alike.slow:.0%} of the groups have no spread" if idle else ""
        lowest = f"the lowest reward ({self._worst_reward:.4g})"
        message = f"In {seen - better} of the last {seen} rows all responses had {lowest}{also}."
        return Finding("", better / seen, 1.0 - self.share, message, {"better": better / seen}, clause=clause)

    def _no_success(self, view: View) -> Finding | None:
        """Whether hardly any of the last rows has a response that earned something, where the log says so row by row."""
        if not any(self._nothing):
            return None
        nothing, rows = list(self._nothing), round(view.rows(MIN_ROWS, MIN_ROWS // 2))
        if len(nothing) < rows or not view.get("reward_std").slow > rounding_of(view):
            return None  # equal in all rows, which is a dead reward or a log with one response per row
        share, later = sum(nothing) / len(nothing), nothing[len(nothing) // 2 :]
        if share < NOTHING or sum(later) < STILL_NOTHING * len(later):
            return None
        lowest = f"the lowest reward ({self._worst_reward:.4g})"
        message = f"In {sum(nothing)} of the last {len(nothing)} rows all responses had {lowest}, so that they taught nothing."
        return Finding("", 1.0 - share, 1.0 - NOTHING, message, {"nothing": share}, clause="no_success")

    def _idle(self, view: View) -> bool:
        """Whether the log says that the groups have no spread."""
        alike = view.get("reward_zero_std_frac")
        return alike.n >= EARLY and alike.slow > self.alike

    def _window(self, view: View) -> int:
        """How many rows are judged: half as many where groups without spread confirm it."""
        return int(view.rows(0.5 * self.rows if self._idle(view) else self.rows, MIN_ROWS))

    def _is_sparse(self, rows: int, high: float) -> bool:
        """Whether nearly all recent rows have the lowest reward, with the later half no better than the earlier one."""
        lowest = self._worst_reward
        if len(self._recent) < rows:
            return False
        recent = [value > lowest for value in self._recent][-rows:]
        earlier, later = sum(recent[: rows // 2]), sum(recent[rows // 2 :])
        moved = high > lowest or any(recent)
        return moved and earlier + later <= (1.0 - self.share) * rows and later <= earlier + LUCK


def _is_without_spread(view: View) -> bool:
    spread = view.get("reward_std")
    return spread.index == view.index and spread.last <= rounding_of(view)
