"""The KL controller corrects too much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.kl import adapts, coefficient, target_of

__all__ = ["ControllerOvershootAnomaly"]

HELD = 5  # rows for which the KL must be on a side of its target


class ControllerOvershootAnomaly(Detector):
    """The coefficient was moved so far that the KL passed through its target and far beyond it.

    What it catches: a KL that was above twice a known target for five rows or more and is now below half of it, with a
        coefficient at least 1.5 times what it was; or the reverse: a KL that was below half the target and is now above twice
        the target, with a coefficient that fell by a third. Both within a hundred rows.
    Why it matters: above its target the penalty hardly holds the policy, below it the penalty holds back learning. The
        controller alternates between the two.
    When it misfires: the first rise of the KL from zero overshoots a little in many runs, but stays below twice the target.
    What to do: lengthen the controller's horizon, or start from the coefficient at which the KL last met its target.
    References: Ziegler et al. 2019, Fine-Tuning Language Models from Human Preferences.
    """

    __slots__ = ("_coef", "_held", "_left", "_side", "far", "moved", "within")
    type: ClassVar[str] = "controller_overshoot_anomaly"
    family: ClassVar[str] = "kl_schedule"
    needs: ClassVar = (("kl_mean",), ("kl_coef",))
    panels: ClassVar = ("kl", "kl_coef")
    watches: ClassVar = ("kl_coef",)
    reads: ClassVar = ("kl_mean", "target_kl")
    advice: ClassVar[str] = "Lengthen the controller's horizon, or start from the coefficient at which the KL met its target."
    clear: ClassVar[int] = 10
    clauses: ClassVar = {
        "overshoot": Clause(
            "the KL passed through its target to the other side, driven by the coefficient", "warning",
            "definition of an overshoot; a factor of two on either side is a judgement", persist=HELD, min_rows=HELD,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "far": Setting(2.0, "factor above or below the target that counts as far", min=1.0),
        "moved": Setting(1.5, "factor by which the coefficient must have moved", min=1.0),
        "within": Setting(100, "rows from one side to the other", min=1),
    }
    far: float
    moved: float
    within: float
    _side: int
    _held: int
    _left: int
    _coef: float

    def reset(self) -> None:
        super().reset()
        self._side = self._held = self._left = 0
        self._coef = 0.0

    def find(self, view: View) -> Sequence[Finding]:
        target = target_of(view)
        kl = view.get("kl_mean")
        side = 1 if kl.level > self.far * target else -1 if kl.level * self.far < target else 0
        if side == self._side:
            self._held += 1
            if self._left:  # it came back to the side it started from
                self._left = 0
            return ()
        coef = view.get("kl_coef")
        if side == 0:
            self._left += 1
            if self._held < HELD or self._left > self.within:
                self._start(0, coef.level)
            return ()
        if not self._side or self._held < HELD or not adapts(view) or not self._pushed(side, coef.level):
            self._start(side, coef.level)
            return ()
        self._left += 1
        if self._left > self.within:  # too long ago to be an overshoot
            self._start(side, coef.level)
            return ()
        message = (
            f"KL went from one side of its target of {target:.3g} to {kl.level:.3g} on the other, while the coefficient changed "
            f"from {self._coef:.3g} to {coef.level:.3g}."
        )
        limit = self.far * target if side > 0 else target / self.far
        return (Finding("warning", kl.level, limit, message, {"kl": kl.level, "target": target, "coef": coef.level}),)

    def _start(self, side: int, coef: float) -> None:
        self._side, self._held, self._left, self._coef = side, 1, 0, coef

    def _pushed(self, side: int, coef: float) -> bool:
        """Whether it was the coefficient that drove the KL to this side."""
        return coef * self.moved < self._coef if side > 0 else coef > self._coef * self.moved

    def advice_for(self, view: View, finding: Finding) -> str:
        return f"Lengthen the controller's horizon; the KL coefficient{coefficient(view)} moved too far for the KL to follow."
