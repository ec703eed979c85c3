"""The weights were changed by something other than the optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.reward import SCORES, score_of
from rldk.signals.series import Series

__all__ = ["WeightsReplaced"]

BEFORE, AFTER = 6, 3  # rows before and after the fall that are compared
BACK = 0.5  # share of the previous KL below which it fell back
SPREADS = 0.5  # spreads of the previous rows by which it must be below their lowest value
NOTICEABLE = 0.05  # KL above which a fall is not chance


class WeightsReplaced(Detector):
    """The policy changed suddenly: old weights were loaded, or the weights were overwritten.

    What it catches: a change of the weights in one update that is many times the usual and is not explained by a higher
        learning rate; a KL from the reference that halves from one row to the next and stays there, together with the reward.
    Why it matters: what was learnt since the weights were saved is lost, and nothing else in the log shows it.
    When it misfires: the KL also falls after a spike, so it is compared with the median of the six rows before, and must stay
        low.
    What to do: check what was loaded at that step (a resume, a sync of the sampler, averaged weights), and resume from
        the newest checkpoint.
    References: none.
    """

    __slots__ = ("_recent", "factor")
    type: ClassVar[str] = "weights_replaced"
    family: ClassVar[str] = "run"
    needs: ClassVar = (("weight_change", "kl_mean"),)
    panels: ClassVar = ("kl", "reward")
    reads: ClassVar = (*SCORES, "policy_lr", "lr")
    advice: ClassVar[str] = (
        "Check what was loaded at that step (a resume, a sync, averaged weights), and resume from the newest checkpoint."
    )
    clear: ClassVar[int] = 1 << 30
    clauses: ClassVar = {
        "leap": Clause(
            "the weights changed by eight times the usual in one update", "warning",
            "optimizers bound an update by the learning rate; the largest healthy update was 2.3 times the usual",
            persist=1, min_rows=1,
        ),
        "fell_back": Clause(
            "the KL fell back towards its start within a row, and the reward with it", "warning",
            "definition: the KL to the reference is how far training has come", persist=1, min_rows=1,
        ),
    }  # fmt: skip
    settings: ClassVar = {"factor": Setting(8.0, "factor over its usual level that the change must reach", min=2.0)}
    factor: float
    _recent: list[float]

    def reset(self) -> None:
        super().reset()
        self._recent = []

    def find(self, view: View) -> Sequence[Finding]:
        weights, kl = view.get("weight_change"), view.get("kl_mean")
        found = self._fell_back(view, kl.last) if kl.index == view.index and not kl.nonfinite_run else []
        if weights.n > 2 * BEFORE and weights.index == view.index:
            found = [*self._leap(view, weights), *found]
        return found

    def _leap(self, view: View, weights: Series) -> list[Finding]:
        lr = view.first("policy_lr", "lr")
        risen = max(lr.last / lr.level, 1.0) if lr.level > 0.0 else 1.0  # a restarted schedule takes larger steps
        limit = self.factor * risen * weights.level
        if not weights.last > limit > 0.0:
            return []
        message = f"The weights changed by {weights.last:.2g} of their size in one update; {weights.level:.2g} is usual."
        return [Finding("", weights.last, limit, message, clause="leap")]

    def _fell_back(self, view: View, value: float) -> list[Finding]:
        recent = self._recent
        recent.append(value)
        if len(recent) > BEFORE + AFTER:
            del recent[0]
        if len(recent) < BEFORE + AFTER or not value < BACK * recent[0]:
            return []
        before, after = median(recent[:BEFORE]), max(recent[BEFORE:])
        lowest, highest = min(recent[:BEFORE]), max(recent[:BEFORE])
        if not before > NOTICEABLE or not after < min(BACK * lowest, lowest - SPREADS * (highest - lowest)):
            return []
        score, reward = score_of(view), view.reward
        if not score.n or not reward.best - score.last > max(0.4 * reward.gain, 3.0 * reward.noise):
            return []
        fell = f"KL fell from {before:.3g} to {after:.3g} from one row to the next, and the reward with it"
        message = f"{fell}: other weights were loaded."
        return [Finding("", after, BACK * before, message, {"before": before}, clause="fell_back")]
