"""Nothing is left to gain, and the policy keeps drifting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View
from rldk.signals.channels import CHANNEL_METRICS, harm
from rldk.signals.kl import kl_level
from rldk.signals.series import EARLY

__all__ = ["RewardSaturation"]

TOP = 0.95  # of a reward between 0 and 1
PRESSED = 0.25  # share of the spread that rewards of 0 and 1 with this mean would have
UNUSUAL = 0.05  # share of the natural limit of the KL, 0.15 nats per token: below it the drift of a solved task does no harm
ROWS = 20  # after which it is judged whether the reward was at the top from the start


class RewardSaturation(Detector):
    """The reward is at its ceiling and all responses score the same: nothing is left to learn.

    What it catches: the reward is at its best and its spread stays below half a percent of what it was; or below two percent
        while the KL grows to more than twice what it was when the ceiling was reached, and beyond what is usual. Also a reward
        between 0 and 1 that has been close to 1 since the first rows although single responses differ: it is pressed against
        the end of its range.
    Why it matters: there is nothing left to learn from this reward; each further step only lets the policy drift, which
        degrades its text.
    When it misfires: a solved task is a success: if the KL stays where it is, this is only a note that the run can end.
    What to do: read samples; if the full score is earned, take harder prompts or a finer reward, or end the run here.
    References: Gao et al. 2023, Scaling Laws for Reward Model Overoptimization.
    """

    __slots__ = ("drift", "kl_then", "rows", "rows_alike", "rows_full", "share")
    type: ClassVar[str] = "reward_saturation"
    family: ClassVar[str] = "reward"
    needs: ClassVar = (("reward_mean",), ("reward_std",))
    panels: ClassVar = ("reward", "reward_spread")
    reads: ClassVar = CHANNEL_METRICS
    watches: ClassVar = ("reward_std",)
    advice: ClassVar[str] = (
        "Read samples; if the full score is earned, take harder prompts or a finer reward, or end the run here."
    )
    clauses: ClassVar = {
        "solved": Clause("all responses score the same, at the best reward", NOTE, "definition: no spread, no gradient"),
        "drifting": Clause(
            "all responses score the same at the best reward, and the KL keeps growing", "warning",
            "Gao et al. 2023: the true score falls while the proxy is at its ceiling", persist=3, min_rows=3,
        ),
        "pressed": Clause(
            "since the first rows all rewards lie just below 1, the end of their range", "warning",
            "definition: shares of right answers spread by the root of p (1 - p); a sigmoid or a clip at its end spreads far "
            "less, and good and bad responses hardly differ", persist=10, min_rows=4,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "share": Setting(0.02, "share of its first spread below which all rewards count as the same", min=0.0, max=0.5),
        "rows": Setting(30, "rows for which this must have lasted", min=5),
        "drift": Setting(2.0, "factor by which the KL must have grown since", min=1.0),
    }
    share: float
    rows: float
    drift: float
    rows_full: int
    rows_alike: int
    kl_then: float

    def reset(self) -> None:
        super().reset()
        self.rows_full = self.rows_alike = 0
        self.kl_then = 0.0

    def find(self, view: View) -> Sequence[Finding]:
        reward, spread, kl = view.get("reward_mean"), view.get("reward_std"), view.get("kl_mean")
        if TOP < reward.base < 1.0 and reward.high < 1.0 and reward.n >= view.rows(ROWS, 10):
            return self._pressed(view)
        if not (spread.n >= EARLY and spread.level < self.share * spread.base and reward.level > reward.start):
            self.rows_full = self.rows_alike = 0
            return ()
        self.rows_full += 1
        if self.rows_full == 1:
            self.kl_then = kl.level if kl.ready else 0.0
        self.rows_alike = self.rows_alike + 1 if spread.level < 0.25 * self.share * spread.base else 0
        drifting = kl.level > self.drift * max(self.kl_then, 1e-3) and kl_level(view).strain > UNUSUAL
        min_rows = view.rows(self.rows)
        if self.rows_full < min_rows or not (drifting or self.rows_alike >= min_rows):
            return ()
        if not drifting and harm(view):
            return ()  # a hacked reward is at its ceiling too
        also = f", while KL grew from {self.kl_then:.3g} to {kl.level:.3g}" if drifting else ""
        rows = self.rows_full
        message = f"All responses have scored the same ({reward.level:.4g}) for {rows} rows{also}: nothing is left to learn."
        evidence = {"spread": spread.level, "rows": float(rows)}
        clause = "drifting" if drifting else "solved"
        return (Finding("", spread.level, self.share * spread.base, message, evidence, clause=clause),)

    @staticmethod
    def _pressed(view: View) -> Sequence[Finding]:
        """Whether rewards were pressed against the end of their range from the first rows on."""
        reward, spread = view.get("reward_mean"), view.get("reward_std")
        limit = PRESSED * (reward.slow * (1.0 - reward.slow)) ** 0.5 if 0.0 < reward.slow < 1.0 else 0.0
        if not 0.0 < spread.slow < limit or not reward.level > TOP or view.reward.improves(reward):
            return ()
        message = (
            f"All rewards have been close to 1 since the first rows (mean {reward.slow:.4g}, spread {spread.slow:.2g}): good and "
            "bad responses hardly differ."
        )
        return (Finding("", spread.slow, limit, message, {"spread": spread.slow}, clause="pressed"),)

    def advice_for(self, view: View, finding: Finding) -> str:
        if finding.clause == "pressed":
            return "Use the score before the sigmoid or the clip, or shift and scale it so that responses differ."
        return self.advice
