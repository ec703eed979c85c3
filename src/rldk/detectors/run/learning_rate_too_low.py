"""The learning rate is zero or nearly so."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.channels import policy_moves
from rldk.signals.optimizer import RATES, learning_rate
from rldk.signals.reward import SCORES

__all__ = ["LearningRateTooLow"]


class LearningRateTooLow(Detector):
    """The learning rate is zero, or has decayed to almost zero while the run continues.

    What it catches: a learning rate of exactly zero since the first row, beyond any warm-up; one below a thousandth of its
        highest value for a twentieth of the run or more.
    Why it matters: every step costs the same, and nothing is learnt.
    When it misfires: a log that prints `0.0000` for 5e-6 looks the same: if the reward rises or the KL grows, the rate
        counts as rounded. A schedule that ends near zero is that low for its last few percent only.
    What to do: set the learning rate, check the number of steps that the schedule was made for, and that the scheduler is
        stepped once per update.
    References: cosine and linear schedules are below a thousandth of their peak in their last two percent.
    """

    __slots__ = ("_fine", "_gone", "_highest", "_last", "_rows", "share")
    type: ClassVar[str] = "learning_rate_too_low"
    family: ClassVar[str] = "run"
    needs: ClassVar = (RATES,)
    panels: ClassVar = ("lr", "reward", "kl")
    reads: ClassVar = (*SCORES, "kl_mean", "kl_update", "weight_change", "clip_frac", "preference_margin")
    advice: ClassVar[str] = "Set the learning rate, and check the number of steps that its schedule was made for."
    clear: ClassVar[int] = 3
    clauses: ClassVar = {
        "zero": Clause(
            "the learning rate has been zero since the first row", "critical", "definition: nothing is updated",
            persist=20, min_rows=6,
        ),
        "gone": Clause(
            "the learning rate is below a thousandth of its highest value, and the run continues", "warning",
            "schedules reach that in their last two percent", persist=8, min_rows=3,
        ),
    }  # fmt: skip
    settings: ClassVar = {"share": Setting(1e-3, "share of its highest value that counts as zero", min=0.0, max=1.0)}
    share: float
    _highest: float
    _last: float
    _gone: int
    _rows: int

    def reset(self) -> None:
        super().reset()
        self._highest, self._last = 0.0, nan
        self._gone = self._rows = 0
        self._fine = False

    def find(self, view: View) -> Sequence[Finding]:
        series = learning_rate(view)
        rate = series.last
        if series.index != view.index or not rate >= 0.0:
            return ()
        self._rows += 1
        self._highest = max(self._highest, rate)
        if not self._fine and rate != self._last:
            self._fine, self._last = float(f"{rate:.0e}") != rate, rate
        if self._highest == 0.0:
            if _moves(view):
                return ()
            message = "The learning rate has been 0 since the first row."
            return (Finding("", rate, 0.0, message, {"lr": rate}, clause="zero"),)
        self._gone = self._gone + 1 if rate < self.share * self._highest else 0
        if not self._gone or self._gone < 0.05 * self._rows or (rate == 0.0 and not self._fine and _moves(view)):
            return ()  # printed with one digit, a small rate is 0
        message = f"The learning rate is {rate:.2g}, down from {self._highest:.3g}, and the run continues."
        return (Finding("", rate, self.share * self._highest, message, {"lr": rate, "highest": self._highest}, clause="gone"),)


def _moves(view: View) -> bool:
    """Whether the policy still learns, so that the rate was rounded when printed. A KL must grow: estimates of 0 scatter."""
    kl = view.get("kl_mean")
    watched = view.get("weight_change").n > 0
    margin = view.get("preference_margin")
    learns = margin.ready and margin.level > margin.start + 4.0 * margin.noise
    return policy_moves(view) or (not watched and (learns or kl.level - kl.start > max(4.0 * kl.noise, 1e-4)))
