"""What the model could do on data it is not trained on is lost."""

from __future__ import annotations

from itertools import pairwise
from math import inf, isfinite
from typing import ClassVar

from rldk.detectors.base import Detector, Finding, Setting, View

__all__ = ["HeldOutCollapse"]

MEASURES = {"eval_accuracy": "accuracy", "eval_reward_mean": "reward"}
LEAST = 3  # measurements before there is a best to fall from
AGAIN = 3  # in a row that are low, from which on it is critical


class HeldOutCollapse(Detector):
    """Accuracy or reward on held-out data has lost a large part of its best, and does not come back.

    What it catches: two measurements in a row that are both below the best pair in a row by two fifths of it (or of all that
        had been gained since the first), and by more than their usual changes. At the third it is critical.
    Why it matters: the reward in training is noisy, is chosen by the sampler and can be hacked; what is measured on the same
        questions again and again is the model itself.
    When it misfires: a held-out set that is drawn anew each time, or of a few dozen questions, jumps; the wait for a pair, and
        for changes beyond the usual, is there for that. A change of the evaluation itself looks the same.
    What to do: stop, go back to the checkpoint before the fall, lower the learning rate or raise the KL penalty.
    References: Gao et al. 2023, Scaling Laws for Reward Model Overoptimization.
    """

    __slots__ = ("_best", "_change", "_low", "lost", "noises")
    type: ClassVar[str] = "held_out_collapse"
    tracker: ClassVar[str] = "reward"
    needs: ClassVar = (tuple(MEASURES),)
    advice: ClassVar[str] = (
        "Go back to the checkpoint before the fall; lower the learning rate or raise the KL penalty, and read samples."
    )
    persist: ClassVar[int] = 1
    clear: ClassVar[int] = 2
    settings: ClassVar = {
        "lost": Setting(0.4, "share of its best that must be lost", least=0.1, most=1.0),
        "noises": Setting(4.0, "times the usual change from one measurement to the next", least=0.0),
    }
    lost: float
    noises: float
    _best: list[float]
    _change: list[float]
    _low: list[int]

    def reset(self) -> None:
        super().reset()
        self._best = [-inf] * len(MEASURES)
        self._change = [0.0] * len(MEASURES)
        self._low = [0] * len(MEASURES)

    def check(self, view: View) -> Finding | None:
        worst = None
        for place, (name, word) in enumerate(MEASURES.items()):
            if name in view.event.metrics and isfinite(view.event.metrics[name]):
                finding = self._measured(view, place, name, word)
                worst = finding if worst is None or (finding and finding.severity == "critical") else worst
        return worst

    def _measured(self, view: View, place: int, name: str, word: str) -> Finding | None:
        series = view.get(name)
        now, best = series.last, self._best[place]
        room = max(self.lost * max(abs(best), best - series.first), self.noises * self._change[place])
        if series.n <= LEAST or best - now <= room:
            recent = series.values()
            self._low[place] = 0
            changes = [abs(after - before) for before, after in pairwise(recent)]
            self._change[place] = sum(changes) / max(len(changes), 1)
            self._best[place] = max(best, min(recent[-2:])) if series.n > 1 else -inf
            return None
        self._low[place] += 1
        if self._low[place] < AGAIN - 1:
            return None
        severity = "critical" if self._low[place] >= AGAIN else "warning"
        message = f"Held-out {word} fell from {best:.3g} to {now:.3g} and stays there."
        return Finding(severity, now, best - room, message, {"best": best, "now": now})
