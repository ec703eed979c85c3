"""The KL rises ever faster."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View
from rldk.signals.channels import CHANNEL_METRICS, harm, works
from rldk.signals.kl import coefficient, in_numbers, unit_of
from rldk.signals.reward import SCORES

__all__ = ["KlTrendAnomaly"]

EVERY = 15
KEPT = 7


class KlTrendAnomaly(Detector):
    """The KL is above what is usual, has been rising for ninety rows, and accelerates.

    What it catches: the mean KL of about ten rows, read every fifteen rows, rose in at least five of the last six readings,
        to 1.5 times the first of them, 1.3 times as much in the later half as in the earlier one, and is now above what
        most healthy runs reach (1 nat per token, 25 per response).
    Why it matters: every run leaves its reference, fast at first and then more slowly, until the penalty holds it. A KL that
        accelerates beyond the usual range is not held by anything and will explode.
    When it misfires: a run without a KL penalty may drift for a long time and be healthy. Where the log does not say
        whether the KL is per token or per response, damage in another channel is required as well. It is only a note while
        the reward thrives and nothing is damaged.
    What to do: raise the KL coefficient, or lower the learning rate.
    References: Gao et al. 2023, Scaling Laws for Reward Model Overoptimization.
    """

    __slots__ = ("_mean", "_readings", "_rising", "pace", "rise", "sequence", "token")
    type: ClassVar[str] = "kl_trend_anomaly"
    family: ClassVar[str] = "kl_schedule"
    needs: ClassVar = (("kl_mean",),)
    panels: ClassVar = ("kl", "kl_coef", "kl_update")
    reads: ClassVar = (*SCORES, *CHANNEL_METRICS)
    advice: ClassVar[str] = "Raise the KL coefficient, or lower the learning rate."
    clear: ClassVar[int] = 20
    clauses: ClassVar = {
        "gathers_pace": Clause(
            "the KL is above the usual range, and its rise accelerates", "warning",
            "a judgement about the shape (a rise that accelerates); by level alone, 5 % of the healthy runs of the tune "
            "split pass 1.8 nats per token",
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "token": Setting(1.0, "nats per token above which a rise matters", min=0.0),
        "sequence": Setting(25.0, "nats per response above which a rise matters", min=0.0),
        "rise": Setting(1.5, "times its value of ninety rows ago that the KL must reach", min=1.0),
        "pace": Setting(1.3, "rise in the later half divided by the rise in the earlier half", min=0.0),
    }
    token: float
    sequence: float
    rise: float
    pace: float
    _mean: float
    _readings: list[float]
    _rising: bool

    def reset(self) -> None:
        super().reset()
        self._mean = 0.0
        self._readings = []
        self._rising = False

    def find(self, view: View) -> Sequence[Finding]:
        kl = view.get("kl_mean")
        level = kl.level
        if level == level:
            self._mean = 0.9 * self._mean + 0.1 * level if kl.n > 1 else level
            if kl.n % EVERY == 0:
                self._read(self._mean)
        if not self._rising:
            return ()
        unit = unit_of(view)
        limit = self.sequence if unit == "sequence" else self.token
        if not level > limit or not (unit or harm(view, besides="kl") or level > self.sequence):
            return ()
        first = self._readings[0]
        message = f"KL rose from {first:.3g} to {level:.3g} {in_numbers(unit)} in {EVERY * (KEPT - 1)} rows and accelerates."
        severity = NOTE if works(view, besides="kl") else "warning"
        return (Finding(severity, level, limit, message, {"kl": level, "kl_before": first}),)

    def _read(self, mean: float) -> None:
        readings = self._readings
        readings.append(mean)
        del readings[:-KEPT]
        self._rising = False
        if len(readings) == KEPT and readings[-1] > self.rise * max(readings[0], 0.0):
            rises = sum(later > earlier for earlier, later in pairwise(readings))
            middle = readings[KEPT // 2]
            self._rising = rises >= KEPT - 2 and readings[-1] - middle >= self.pace * (middle - readings[0])

    def advice_for(self, view: View, finding: Finding) -> str:
        return f"Raise the KL coefficient{coefficient(view)}, or lower the learning rate."
