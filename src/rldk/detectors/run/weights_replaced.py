"""The weights were changed by something other than the optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from statistics import median
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View
from rldk.signals.channels import PREFERENCE_LOSSES
from rldk.signals.optimizer import RATES, learning_rate
from rldk.signals.reward import SCORES, score_of
from rldk.signals.series import Series

__all__ = ["WeightsReplaced"]

BEFORE, AFTER = 6, 3  # rows before and after the fall that are compared
BACK = 0.5  # share of the previous KL or margin below which it fell back
SPREADS = 0.5  # spreads of the previous rows by which it must be below their lowest value
MOVED, ZERO = 1e-3, 1e-3  # KL from which the policy has moved, and the share of it that is zero
LEAPT = 3.0  # times the usual change of the weights
MASKED = 0.8  # share of truncated responses, which a trainer may leave out
NOTICEABLE = 0.05  # KL above which a fall is not chance
SURE = 3.0  # noises of a row: four standard errors of the difference between the medians of six rows and of three
HURT = 1.5  # noises of a row: two standard errors of the difference between two means of four rows


class WeightsReplaced(Detector):
    """The policy changed suddenly: old weights were loaded, or the weights were overwritten.

    What it catches: a change of the weights in one update that is many times the usual and is not explained by a higher
        learning rate: a note, and a warning if the reward of four rows is lower than before, or the preference loss higher; a
        KL from the reference that halves from one row to the next and stays there, together with the reward; a KL that is
        zero again, as after a restart that did not find its checkpoint, critical the second time; a margin between chosen and
        rejected answers that halves at once and stays there.
    Why it matters: what was learnt since the weights were saved is lost, and nothing else in the log shows it.
    When it misfires: the KL also falls after a spike, so it is compared with the six rows before, and must stay low. Pairs that
        are not shuffled have another margin where another data set begins.
    What to do: check what was loaded at that step (a resume, a sync of the sampler, averaged weights), and resume from
        the newest checkpoint.
    References: none.
    """

    __slots__ = ("_before_leap", "_kl_at", "_leapt", "_margin_at", "_margins", "_recent", "_returns", "_zero", "factor")
    type: ClassVar[str] = "weights_replaced"
    family: ClassVar[str] = "run"
    needs: ClassVar = (("weight_change", "kl_mean", "preference_margin"),)
    panels: ClassVar = ("kl", "reward", "margin")
    reads: ClassVar = (*SCORES, *PREFERENCE_LOSSES, *RATES, "truncated_frac")
    advice: ClassVar[str] = (
        "Check what was loaded at that step (a resume, a sync, averaged weights), and resume from the newest checkpoint."
    )
    clear: ClassVar[int] = 1 << 30
    clauses: ClassVar = {
        "leap": Clause(
            "the weights changed by eight times the usual in one update", NOTE,
            "optimizers bound an update by the learning rate; the largest healthy update was 2.3 times the usual. Twelve of "
            "twelve runs of the corpus whose weights were perturbed ended as well as others",
            persist=1, min_rows=1,
        ),
        "leap_hurt": Clause(
            "the weights changed by eight times the usual in one update, and what was learnt is lost", "warning",
            "as above; four rows are worse than the four before by two standard errors", persist=1, min_rows=1,
        ),
        "fell_back": Clause(
            "the KL fell back towards its start within a row, and the reward with it", "warning",
            "definition: the KL to the reference is how far training has come", persist=1, min_rows=1,
        ),
        "margin_fell_back": Clause(
            "the margin between chosen and rejected answers fell back towards its start within a row", "warning",
            "definition: the margin is how far training has come", persist=1, min_rows=1,
        ),
        "at_reference": Clause(
            "the KL is zero again, and the reward fell with it or the weights leapt", "warning",
            "definition: the KL is zero only if the policy is its reference, from which training began", persist=1, min_rows=1,
        ),
        "again_at_reference": Clause(
            "the KL has become zero a second time", "critical", "as above: each restart loses all", persist=1, min_rows=1,
        ),
    }  # fmt: skip
    settings: ClassVar = {"factor": Setting(8.0, "factor over its usual level that the change must reach", min=2.0)}
    factor: float
    _recent: list[float]  # values of the KL
    _margins: list[float]
    _kl_at: int  # the row of the last of them
    _margin_at: int
    _returns: int
    _leapt: int | None  # the row of the last leap
    _before_leap: tuple[float, float]  # mean of four rows and noise of the reward, or of the preference loss
    _zero: float  # the usual KL before a row of zero

    def reset(self) -> None:
        super().reset()
        self._recent, self._margins, self._returns, self._zero = [], [], 0, 0.0
        self._kl_at = self._margin_at = -1
        self._leapt, self._before_leap = None, (0.0, 0.0)

    def find(self, view: View) -> Sequence[Finding]:
        weights, kl, margin = view.get("weight_change"), view.get("kl_mean"), view.get("preference_margin")
        found: list[Finding] = []
        if kl.index == view.index != self._kl_at and not kl.nonfinite_run:
            self._kl_at = view.index  # more of the same step is not another row
            found = [*self._at_reference(view, kl.last), *self._fell_back(view, kl.last)]
        if margin.index == view.index != self._margin_at and not margin.nonfinite_run:
            self._margin_at = view.index
            found += self._margin_fell_back(margin)
        if weights.n > 2 * BEFORE and weights.index == view.index:
            found = [*self._leap(view, weights), *found]
        if self._leapt is not None and view.index >= self._leapt + AFTER:
            found = [*self._leap_hurt(view), *found]
        return found

    def _leap(self, view: View, weights: Series) -> list[Finding]:
        lr = learning_rate(view)
        risen = max(lr.last / lr.level, 1.0) if lr.level > 0.0 else 1.0  # a restarted schedule takes larger steps
        limit = self.factor * risen * weights.level
        if not weights.last > limit > 0.0:
            return []
        message = f"The weights changed by {weights.last:.2g} of their size in one update; {weights.level:.2g} is usual."
        if self._leapt is None:
            quality = _quality(view)
            self._leapt, self._before_leap = view.index, (_mean(quality.values()[:-1]), quality.noise)
        return [Finding("", weights.last, limit, message, clause="leap")]

    def _leap_hurt(self, view: View) -> list[Finding]:
        """Whether the rows after a leap are worse than those before it."""
        quality, (before, noise) = _quality(view), self._before_leap
        self._leapt = None
        after = _mean(quality.values()[-1 - AFTER :])
        worse = before - after if quality is score_of(view) else after - before
        if not worse > HURT * noise:
            return []
        what = "reward" if quality is score_of(view) else "loss"
        message = f"The weights changed by many times the usual in one update. The {what} was {before:.3g}, and is {after:.3g}."
        return [Finding("", after, before, message, {"before": before, "after": after}, clause="leap_hurt")]

    def _at_reference(self, view: View, value: float) -> list[Finding]:
        """Whether the policy was its reference again in the row before, as after a restart that did not find its checkpoint.

        Rows without trained tokens have a KL of zero too: those in which nearly all responses are truncated do not count.
        """
        if view.get("truncated_frac").last > MASKED:
            return []
        before, self._zero = self._zero, 0.0
        if before and value < BACK * before:
            self._returns += 1
            times = "" if self._returns == 1 else f", {self._returns} times so far"
            message = f"KL fell from {before:.3g} to zero{times}: the policy is its reference again, and what was learnt is lost."
            clauses = ("at_reference", "again_at_reference") if self._returns > 1 else ("at_reference",)
            return [Finding("", value, BACK * before, message, {"before": before}, clause=clause) for clause in clauses]
        recent = self._recent[-3:]
        if len(recent) < 3 or not abs(value) < ZERO * max(recent):
            return []
        usual = median(recent)
        if usual > MOVED and abs(value) < ZERO * usual and view.setting("syncs_reference") != 1.0:
            weights, score = view.get("weight_change"), score_of(view)
            leapt = weights.index == view.index and weights.n > 3 and weights.last > LEAPT * weights.level
            if leapt or score.level - score.last > score.noise:  # else the reference was moved to the policy, which goes on
                self._zero = usual
        return []

    def _fell_back(self, view: View, value: float) -> list[Finding]:
        halved = _halved(self._recent, value)
        if halved is None:
            return []
        before, after, lowest, highest = halved
        spread = (lowest / highest) ** SPREADS if lowest > 0.0 else 0.0  # its noise is a factor
        if not before > NOTICEABLE or not after < lowest * min(BACK, spread):
            return []
        score, reward = score_of(view), view.reward
        if not score.n or not reward.best - score.last > max(0.4 * reward.gain, 3.0 * reward.noise):
            return []
        fell = f"KL fell from {before:.3g} to {after:.3g} from one row to the next, and the reward with it"
        message = f"{fell}: other weights were loaded."
        return [Finding("", after, BACK * before, message, {"before": before}, clause="fell_back")]

    def _margin_fell_back(self, margin: Series) -> list[Finding]:
        halved = _halved(self._margins, margin.last)
        if halved is None:
            return []
        before, after, lowest, highest = halved
        if not lowest > 0.0 or not after < min(BACK * lowest, lowest - SPREADS * (highest - lowest)):
            return []
        if not after < before - SURE * margin.noise:
            return []
        if self._margins[BEFORE - 1] - self._margins[BEFORE] < 0.5 * (before - after):
            return []  # a slow decline
        fell = f"The margin between chosen and rejected answers fell from {before:.3g} to {after:.3g} from one row to the next"
        message = f"{fell}: other weights were loaded, or the pairs are others."
        return [Finding("", after, BACK * before, message, {"before": before}, clause="margin_fell_back")]


def _halved(recent: list[float], value: float) -> tuple[float, float, float, float] | None:
    """Take a value. If it is below half of the oldest: median before the last three, their highest, and the range before."""
    recent.append(value)
    if len(recent) > BEFORE + AFTER:
        del recent[0]
    if len(recent) < BEFORE + AFTER or not value < BACK * recent[0]:
        return None
    before = recent[:BEFORE]
    return median(before), max(recent[BEFORE:]), min(before), max(before)


def _quality(view: View) -> Series:
    """What shows how good the policy is: the reward, or in preference training the loss."""
    score = score_of(view)
    return score if score.n else view.first(*PREFERENCE_LOSSES)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else nan
