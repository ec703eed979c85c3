"""The KL controller swings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.kl import coefficient

__all__ = ["ControllerOscillationAnomaly"]


class ControllerOscillationAnomaly(Detector):
    """The coefficient goes up and down repeatedly, and the KL with it.

    What it catches: four turns of the coefficient within three hundred rows, each after a change of at least 30 %,
        with a KL whose highest value between two turns is at least twice its lowest.
    Why it matters: each swing first lets the policy go and then pulls it back. What it learns in one half of the swing it
        loses in the other, and swings that grow end in an explosion.
    When it misfires: a coefficient that follows noise makes many small turns, which do not count. With a schedule set by
        hand the KL does not swing along, so it does not count either.
    What to do: lengthen the controller's horizon, so that the coefficient moves more slowly than the KL can follow.
    References: Ziegler et al. 2019, Fine-Tuning Language Models from Human Preferences.
    """

    __slots__ = ("_extreme", "_kl_high", "_kl_low", "_turns", "_way", "amplitude", "kl_ratio", "rows", "turns")
    type: ClassVar[str] = "controller_oscillation_anomaly"
    family: ClassVar[str] = "kl_schedule"
    needs: ClassVar = (("kl_mean",), ("kl_coef",))
    panels: ClassVar = ("kl", "kl_coef")
    watches: ClassVar = ("kl_coef",)
    reads: ClassVar = ("kl_mean",)
    advice: ClassVar[str] = "Lengthen the controller's horizon, so that the coefficient moves more slowly."
    clear: ClassVar[int] = 20
    clauses: ClassVar = {
        "swings": Clause(
            "the coefficient goes up and down repeatedly, and the KL with it", "warning",
            "definition of an oscillation; the size and number of turns are a judgement, tested on simulated controllers",
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "amplitude": Setting(1.3, "factor between two turns of the coefficient", min=1.0),
        "turns": Setting(4, "turns needed within `rows`", min=2, max=16),
        "rows": Setting(300, "rows within which the turns must lie", min=10),
        "kl_ratio": Setting(2.0, "factor between the highest and the lowest KL of a swing", min=1.0),
    }
    amplitude: float
    turns: float
    rows: float
    kl_ratio: float
    _way: int
    _extreme: float
    _kl_high: float
    _kl_low: float
    _turns: list[int]

    def reset(self) -> None:
        super().reset()
        self._way = 0
        self._extreme = 0.0
        self._kl_high, self._kl_low = 0.0, 0.0
        self._turns = []

    def find(self, view: View) -> Sequence[Finding]:
        coef = view.get("kl_coef")
        value, level = coef.level, view.get("kl_mean").level
        if not value > 0.0 or level != level:
            return ()
        if level > self._kl_high:
            self._kl_high = level
        elif level < self._kl_low:
            self._kl_low = level
        if not self._extreme:
            self._extreme, self._kl_high, self._kl_low = value, level, level
        elif self._way * (value - self._extreme) > 0.0:
            self._extreme = value
        elif value > self.amplitude * self._extreme or value * self.amplitude < self._extreme:
            self._turn(view, value, level)
        turns = self._turns
        if len(turns) < self.turns or coef.n - turns[0] > self.rows:
            return ()
        message = (
            f"The KL coefficient turned {len(turns)} times in {coef.n - turns[0]} rows (now {value:.3g}), and the KL with it."
        )
        return (Finding("warning", float(len(turns)), self.turns, message, {"coef": value, "kl": level}),)

    def _turn(self, view: View, value: float, level: float) -> None:
        """The coefficient has turned: the turn counts if the KL swung too; otherwise counting starts over."""
        first = not self._way
        self._way = 1 if value > self._extreme else -1
        if not first:
            swung = self._kl_high > self.kl_ratio * max(self._kl_low, 0.0)
            self._turns = [*self._turns, view.get("kl_coef").n][-int(self.turns) :] if swung else []
        self._extreme, self._kl_high, self._kl_low = value, level, level

    def advice_for(self, view: View, finding: Finding) -> str:
        return f"Lengthen the controller's horizon, so that the KL coefficient{coefficient(view)} moves more slowly."
