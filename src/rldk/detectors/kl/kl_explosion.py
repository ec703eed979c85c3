"""The policy has left its reference."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import ClassVar

from rldk.core.text import listed
from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View
from rldk.signals.channels import CHANNEL_METRICS, harm, works
from rldk.signals.kl import LIMIT, USUAL_SEQUENCE, USUAL_TOKEN, KlLevel, coefficient, is_assumed, kl_level, target_of
from rldk.signals.lagged_level import QUICK, SLOW, LaggedLevel
from rldk.signals.optimizer import RATES, learning_rate, rate_in_brackets
from rldk.signals.reward import SCORES

__all__ = ["KlExplosion"]

ABSURD = 5.0  # times the limit at which one row is enough
STAYS = 0.5  # share of the limit to which a KL must come back before it counts as settled again
RESTED = 1e-3  # share of the limit below which a KL has not settled: the policy has not begun to move


class KlExplosion(Detector):
    """The KL from the reference is beyond what any healthy run reaches.

    What it catches: a KL (median of five rows) above 3 nats per token, 100 per response of up to two hundred tokens, 50 per
        response where the length is not logged, or 10 where the unit is not known. Above half of that limit it is a warning if
        it lasts, and critical if the reward or another channel is damaged as well. A KL of five times the run's own target is a
        warning, and ten times the target is critical if it lasts.
    Why it matters: the further the policy is from its reference, the less it keeps of what the reference knew, and the less
        a reward model's score of its text means.
    When it misfires: runs without a KL penalty go further and may be healthy; the limits were set on such runs. The k3
        estimate is driven by single tokens, which is why the median is judged. While the reward rises and no other channel
        has left its range, a KL of up to twice the limit is only a warning.
    What to do: go back to the last good checkpoint, raise the KL coefficient, lower the learning rate.
    References: Gao et al. 2023, Scaling Laws for Reward Model Overoptimization; Ziegler et al. 2019.
    """

    __slots__ = ("_lagged", "_rested", "limit", "settled_factor", "target_factor")
    type: ClassVar[str] = "kl_explosion"
    family: ClassVar[str] = "kl_schedule"
    needs: ClassVar = (("kl_mean",),)
    panels: ClassVar = ("kl", "kl_coef", "kl_update")
    reads: ClassVar = (*SCORES, *CHANNEL_METRICS, *RATES)
    advice: ClassVar[str] = "Go back to the last good checkpoint, raise the KL coefficient and lower the learning rate."
    clear: ClassVar[int] = 8
    clauses: ClassVar = {
        "beyond_any": Clause(
            "the KL is beyond what any healthy run reaches", "critical",
            "corpus: healthy runs of the tune split reach 2.7 nats per token, public ones 1.3; failing ones reach 3 to 9",
            persist=5, min_rows=2,
        ),
        "with_damage": Clause(
            "the KL is above half of the limit, and another channel has left its range", "critical",
            "half of the limit, corroborated by an independent channel", persist=5, min_rows=2,
        ),
        "far": Clause(
            "the KL stays far above the usual level", "warning",
            "ranges of real runs: 24 failing runs and 1 healthy run pass 1.5 nats per token or 25 per response",
            persist=25, min_rows=6,
        ),
        "above_settled": Clause(
            "the KL is many times the level it had settled at", "warning",
            "simulated and public runs: a settled KL does not grow eightfold without a cause", persist=10, min_rows=4,
        ),
        "unit_unknown": Clause(
            "the KL is large for one per token, and small for one per response", NOTE,
            "definition: a policy 3 nats per token away is another model, which earns no rising reward", persist=5, min_rows=3,
        ),
        "lost_target": Clause(
            "the KL stays at ten times its target or more", "critical",
            "ten times the run's own target: no controller recovers from that", persist=20, min_rows=5,
        ),
        "beyond_target": Clause(
            "the KL is many times its target", "warning", "five times the run's own target", persist=10, min_rows=4,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "limit": Setting(1.0, "times the natural limit (3 nats per token) at which it is critical", min=0.0),
        "settled_factor": Setting(8.0, "times the level it had settled at", min=1.0),
        "target_factor": Setting(5.0, "times the run's own target that is too much", min=1.0),
    }
    limit: float
    settled_factor: float
    target_factor: float
    _lagged: LaggedLevel
    _rested: float

    def reset(self) -> None:
        super().reset()
        self._lagged = LaggedLevel()
        self._rested = 0.0

    def find(self, view: View) -> Sequence[Finding]:
        kl, series = kl_level(view), view.get("kl_mean")
        target = target_of(view)
        aims = target > 0.1 * (USUAL_SEQUENCE if kl.unit == "sequence" else USUAL_TOKEN)  # else it is in another unit
        high = aims and series.level > self.target_factor * target
        if series.n % SLOW == 0 or series.n % QUICK == 0:
            self._lagged.read(series.n, series.level)
        settled = self._rested or self._settled(kl, series.level, view.steps_per_row < 2.0)
        limit = self.settled_factor * settled * (STAYS if self._rested else 1.0)
        risen = series.level > limit and not series.receded
        self._rested = settled if risen else 0.0  # what it has risen from does not move along with it
        if not (kl.strain > 0.5 * self.limit or high or risen):
            return self._of_unknown_unit(view)
        first = series.first * kl.value / series.level if series.level > 0.0 else series.first  # in the unit of the words
        message = f"KL from the reference is {kl.words}, from {first:.3g} in the first row."
        evidence = {"kl": series.level, "kl_start": series.first, "strain": kl.strain}
        found = []
        if high:
            text = f"KL is {series.level:.3g}; its target is {target:.3g}."
            found.append(Finding("", series.level, self.target_factor * target, text, evidence, clause="beyond_target"))
            if series.level > 2.0 * self.target_factor * target:
                found.append(Finding("", series.level, 2.0 * self.target_factor * target, text, evidence, clause="lost_target"))
        if risen:
            text = f"KL is {series.level:.3g}; it had settled at {settled:.3g}."
            found.append(Finding("", series.level, self.settled_factor * settled, text, evidence, clause="above_settled"))
        if kl.strain > 0.5 * self.limit:
            found.append(Finding("", kl.value, 0.5 * kl.value / kl.strain, message, evidence, clause="far"))
            damaged = harm(view, besides="kl")
            if damaged and (kl.unit or kl.strain > self.limit):
                text = f"{message[:-1]}, and {listed(damaged)}."
                found.append(Finding("", kl.value, 0.5 * kl.value / kl.strain, text, evidence, clause="with_damage"))
        if kl.strain > self.limit:
            sure = kl.strain > ABSURD * self.limit and series.n >= 3
            severity = "warning" if kl.strain < 2.0 * self.limit and works(view, besides="kl") else ""
            found.append(Finding(severity, kl.value, kl.value / kl.strain, message, evidence, sure, clause="beyond_any"))
        return found

    @staticmethod
    def _of_unknown_unit(view: View) -> Sequence[Finding]:
        """A note where the KL is taken as per response in a log that does not say: per token it would be far beyond any limit."""
        if not is_assumed(view):
            return ()
        series = view.get("kl_mean")
        message = (
            f"KL rose from {series.first:.3g} to {series.level:.3g} nats, and the log does not say whether per token or per "
            "response. It is taken as per response, since the reward rises; per token the policy would be far from its reference."
        )
        return (Finding("", series.level, LIMIT["token"], message, {"kl": series.level}, clause="unit_unknown"),)

    def _settled(self, kl: KlLevel, level: float, dense: bool) -> float:
        """The level at which the KL rested a hundred rows ago (thirty if a row stands for several steps); else infinite."""
        readings = self._lagged.slow if dense else self._lagged.quick
        if len(readings) < 5 or not kl.strain > 0.03:
            return inf
        low, high = min(readings[:2]), max(readings[:2])
        return high if RESTED * level / kl.strain < high <= 2.0 * low else inf

    def advice_for(self, view: View, finding: Finding) -> str:
        rate = rate_in_brackets(learning_rate(view))
        return (
            f"Go back to the last good checkpoint, raise the KL coefficient{coefficient(view)} and lower the learning rate{rate}."
        )
