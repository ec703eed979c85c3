"""The KL coefficient is stuck."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.kl import adapts, target_of

__all__ = ["CoefAdaptationAnomaly"]


class CoefAdaptationAnomaly(Detector):
    """The coefficient has stopped moving while the KL is far from its target.

    What it catches: a coefficient that once moved and has kept one value for thirty rows, at a bound or elsewhere,
        while the KL was above 1.5 times or below half of a known target throughout.
    Why it matters: an adaptive run relies on the coefficient to bring the KL back. While the
        coefficient is stuck, nothing does.
    When it misfires: a coefficient that never moved is a choice and is not judged, and neither is a run without a known
        target. The rule that doubles and halves the coefficient does nothing between 1/1.5 and 1.5 times the target, which is
        why that range is allowed.
    What to do: raise the bound it has reached, or set the coefficient by hand; check that the controller is still called
        after a resume or a change of phase.
    References: Schulman et al. 2017, section 4 (adaptive KL penalty); Ziegler et al. 2019.
    """

    __slots__ = ("_rows", "_value", "above", "below", "rows")
    type: ClassVar[str] = "coef_adaptation_anomaly"
    family: ClassVar[str] = "kl_schedule"
    needs: ClassVar = (("kl_mean",), ("kl_coef",))
    panels: ClassVar = ("kl_coef", "kl")
    watches: ClassVar = ("kl_coef",)
    reads: ClassVar = ("kl_mean", "target_kl")
    advice: ClassVar[str] = (
        "Raise the bound that the coefficient has reached, or set it by hand; check that its controller is called."
    )
    clear: ClassVar[int] = 3
    clauses: ClassVar = {
        "stuck": Clause(
            "the coefficient stopped moving while the KL is far from its target", "warning",
            "Schulman et al. 2017: an adaptive coefficient changes whenever the KL is outside 1/1.5 to 1.5 times the target",
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "above": Setting(1.5, "times the target above which the coefficient must rise", min=1.0),
        "below": Setting(0.5, "times the target below which the coefficient must fall", min=0.0, max=1.0),
        "rows": Setting(30, "consecutive rows", min=2),
    }
    above: float
    below: float
    rows: float
    _value: float
    _rows: int

    def reset(self) -> None:
        super().reset()
        self._value = -1.0
        self._rows = 0

    def find(self, view: View) -> Sequence[Finding]:
        coef = view.get("kl_coef")
        value = coef.last
        if value != self._value:
            self._value = value
            self._rows = 0
            return ()
        target = target_of(view)
        kl = view.get("kl_mean")
        if not (kl.level > self.above * target or kl.level < self.below * target) or not adapts(view):
            self._rows = 0
            return ()
        self._rows += 1
        if self._rows < view.rows(self.rows):
            return ()
        bound = ", the highest it has been," if value >= coef.high else ", the lowest it has been," if value <= coef.low else ""
        message = (
            f"The KL coefficient has stayed at {value:.3g}{bound} for {self._rows} rows, while the KL is {kl.level:.3g} "
            f"and its target is {target:.3g}."
        )
        return (Finding("warning", value, float(self.rows), message, {"kl": kl.level, "target": target, "coef": value}),)

    def advice_for(self, view: View, finding: Finding) -> str:
        way = "Raise" if finding.evidence["kl"] > finding.evidence["target"] else "Lower"
        return (
            f"{way} the KL coefficient (now {finding.value:.3g}) or widen its bound; check that its controller is still called."
        )
