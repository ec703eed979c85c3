"""The KL controller does not respond."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.kl import adapts, coefficient, target_of

__all__ = ["ControllerResponsivenessAnomaly"]


class ControllerResponsivenessAnomaly(Detector):
    """The KL is far from its target, and the coefficient moves the wrong way or hardly at all.

    What it catches: a KL of more than twice or less than half of a known target for twenty rows, while the coefficient
        moved by 5 % or more in the wrong direction; or a KL of more than twice the target for fifty rows, while the
        coefficient rose by less than 5 %.
    Why it matters: the coefficient is the controller's only means. If it moves the wrong way, it drives the KL further off;
        if it hardly moves, it might as well be fixed.
    When it misfires: a coefficient that never moved is a choice, and one that stopped moving is `coef_adaptation_anomaly`:
        neither is judged here. A KL below its target with a slow controller does no harm and is not judged either.
    What to do: wrong way: check the sign of the error and that target and KL have the same unit. Too slow: shorten the horizon,
        or set a higher coefficient by hand.
    References: Ziegler et al. 2019: the coefficient changes by at most 0.2 times batch over horizon per step.
    """

    __slots__ = ("_coef", "_rows", "_side", "far", "least", "slow_rows", "wrong_rows")
    type: ClassVar[str] = "controller_responsiveness_anomaly"
    family: ClassVar[str] = "kl_schedule"
    needs: ClassVar = (("kl_mean",), ("kl_coef",))
    panels: ClassVar = ("kl", "kl_coef")
    watches: ClassVar = ("kl_coef",)
    reads: ClassVar = ("kl_mean", "target_kl")
    advice: ClassVar[str] = "Shorten the controller's horizon, or check the sign of its error and the unit of its target."
    clear: ClassVar[int] = 10
    clauses: ClassVar = {
        "wrong_way": Clause(
            "the KL is far from its target and the coefficient moves the wrong way", "warning",
            "definition: above its target the coefficient must rise, below it must fall", persist=3, min_rows=3,
        ),
        "too_slow": Clause(
            "the KL is far above its target and the coefficient hardly rises", "warning",
            "a judgement: 5 % in fifty updates; Ziegler et al. 2019 clip the error of each step at 0.2", persist=3, min_rows=3,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "far": Setting(2.0, "factor above or below the target that counts as far", min=1.0),
        "least": Setting(0.05, "relative change of the coefficient that counts as a move", min=0.0),
        "wrong_rows": Setting(20, "updates far from the target until a wrong direction counts", min=1),
        "slow_rows": Setting(50, "updates above the target until a slow response counts", min=1),
    }
    far: float
    least: float
    wrong_rows: float
    slow_rows: float
    _side: int
    _rows: int
    _coef: float

    def reset(self) -> None:
        super().reset()
        self._side = self._rows = 0
        self._coef = 0.0

    def find(self, view: View) -> Sequence[Finding]:
        target = target_of(view)
        kl = view.get("kl_mean")
        side = 1 if kl.level > self.far * target else -1 if kl.level * self.far < target else 0
        if not side and not self._side:
            return ()
        coef = view.get("kl_coef")
        if side != self._side or not adapts(view):
            self._side, self._rows, self._coef = side, 0, coef.level
            return ()
        self._rows += 1
        if self._rows < view.rows(self.wrong_rows) or coef.level == self._coef:
            return ()
        change = coef.level / self._coef - 1.0 if self._coef else 0.0
        wrong = change * side <= -self.least
        slow = side > 0 and self._rows >= view.rows(self.slow_rows) and change < self.least
        if not (wrong or slow):
            return ()
        message = (
            f"KL has been {'above' if side > 0 else 'below'} its target of {target:.3g} for {self._rows} rows (now "
            f"{kl.level:.3g}), and the coefficient changed from {self._coef:.3g} to {coef.level:.3g}."
        )
        evidence = {"kl": kl.level, "target": target, "coef": coef.level}
        return (Finding("", change, side * self.least, message, evidence, clause="wrong_way" if wrong else "too_slow"),)

    def advice_for(self, view: View, finding: Finding) -> str:
        if finding.value * finding.threshold < 0.0:
            return "Check the sign of the controller's error, and that its target and the KL have the same unit."
        return f"Shorten the controller's horizon, or set a higher KL coefficient{coefficient(view)} by hand."
