"""Quality on held-out data is lost, or never changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.held_out import HELD_OUT, HeldOut, held_out_fall
from rldk.signals.reward import SCORES, score_of
from rldk.signals.series import RECENT, Series

__all__ = ["HeldOutCollapse"]

MEASURES = {**{name: f"Held-out {what}" for name, what in HELD_OUT.items()}, "accuracy": "Accuracy"}
LEAST = 4  # measurements needed before a fall can be judged
RARE = 5.0  # steps per row from which an accuracy is taken as held-out, and not as that of the batch
PERFECT = 0.98
OVERDONE = 0.1  # share of the gain
FEW = 12  # measurements up to which a fall is told at once
ROSE = 3  # measurements before a reward stayed at its best, which is then what there is to gain
CHANCE = 1e-3  # equal measurements needed, by how often they repeated before


class HeldOutCollapse(Detector):
    """Accuracy or reward on the same questions has lost a large part of its best, or is always the same number.

    What it catches: the median of the latest measurements is below the best by most of the range that the measure has ever
        covered, and by more than its noise; for an accuracy, by a quarter of its best or more. A tenth of its gain is enough
        while the reward in training is at its best: it has been optimised too far. Also a measure that is exactly
        the same number in seven consecutive measurements without being perfect: the policy gives the same answers whatever
        it is trained on.
    Why it matters: the reward in training is noisy, depends on the sampled prompts and can be hacked; repeated measurements on
        the same questions show the model itself.
    When it misfires: a held-out set that is sampled again each time, or has only a few dozen questions, jumps; this is why a
        change must exceed the usual variation. A change of the evaluation itself looks the same.
    What to do: stop, go back to the checkpoint before the fall, lower the learning rate or raise the KL penalty.
    References: Gao et al. 2023, Scaling Laws for Reward Model Overoptimization.
    """

    __slots__ = ("lost", "noises")
    type: ClassVar[str] = "held_out_collapse"
    family: ClassVar[str] = "reward"
    needs: ClassVar = (tuple(MEASURES),)
    panels: ClassVar = ("reward", "accuracy")
    reads: ClassVar = SCORES
    advice: ClassVar[str] = (
        "Go back to the checkpoint before the fall; lower the learning rate or raise the KL penalty, and read samples."
    )
    clear: ClassVar[int] = 2
    clauses: ClassVar = {
        "lost": Clause(
            "held-out quality has lost a quarter of its best, and most of its range", "critical",
            "an accuracy over a hundred questions errs by 5 points; a quarter of the best is beyond chance",
            persist=2, min_rows=2,
        ),
        "slipping": Clause(
            "held-out quality has lost a tenth of its best, and most of its range", "warning",
            "as `lost`, at three times its noise; at four times if there are few measurements, which cannot wait for another",
            persist=3, min_rows=3,
        ),
        "overoptimised": Clause(
            "held-out quality has lost a tenth of its gain while the reward in training is at its best", "warning",
            "Gao et al. 2023: the point after which more of the proxy is less of the goal; five times its noise", persist=3,
            min_rows=3,
        ),
        "pinned": Clause(
            "held-out quality has been the same number many times in a row", "critical",
            "a changing policy does not get the same number of answers right seven times in a row",
            persist=1, min_rows=1,
        ),
        "repeats": Clause(
            "held-out quality has been the same number five times", "warning", "as above, at five times", persist=1, min_rows=1,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "lost": Setting(0.25, "share of its best that must be lost", min=0.1, max=1.0),
        "noises": Setting(4.0, "times its noise by which it must have fallen", min=0.0),
    }
    lost: float
    noises: float

    def find(self, view: View) -> Sequence[Finding]:
        found: list[Finding] = []
        for name, words in MEASURES.items():
            series = view.get(name)
            if name == "accuracy" and series.n > 0.5 * (view.index + 1) and view.steps_per_row < RARE * view.rows_per_event:
                continue  # logged in every row: the accuracy of the batch
            if series.index == view.index and series.n >= LEAST and not series.nonfinite_run:
                fall = held_out_fall(view, name)
                found += [*self._pinned(series, words, name == "eval_reward_mean"), *self._fallen(series, fall, words)]
                if name != "accuracy" and view.reward.thrives(score_of(view)):
                    found += self._overoptimised(series, fall, words)
        return found

    def _fallen(self, series: Series, fall: HeldOut, words: str) -> list[Finding]:
        best, now, lost, size = fall.best, fall.now, fall.lost, fall.size
        if not lost > max(0.6 * fall.whole, 0.1 * size) or not lost > 3.0 * fall.noise:
            return []
        message = f"{words} fell from {best:.3g} to {now:.3g} and stays there."
        evidence = {"best": best, "now": now}
        at_once = 1.0 if series.n <= FEW and lost > 4.0 * fall.noise else 0.0
        found = [Finding("", now, best - 0.1 * size, message, evidence, clause="slipping", persist=at_once)]
        if lost > self.lost * size and lost > self.noises * fall.noise:
            found.append(Finding("", now, best - self.lost * size, message, evidence, clause="lost"))
        return found

    @staticmethod
    def _overoptimised(series: Series, fall: HeldOut, words: str) -> list[Finding]:
        """Whether the quality slides while the reward that is optimised goes on rising."""
        gain = fall.best - series.first
        if series.n < RECENT or not fall.lost > max(OVERDONE * gain, 5.0 * fall.noise):
            return []
        message = f"{words} fell from {fall.best:.3g} to {fall.now:.3g}, while the reward in training is at its best."
        evidence, at_once = {"best": fall.best, "now": fall.now}, float(series.n <= FEW)
        return [Finding("", fall.now, fall.best - OVERDONE * gain, message, evidence, clause="overoptimised", persist=at_once)]

    @staticmethod
    def _pinned(series: Series, words: str, is_reward: bool) -> list[Finding]:
        """Whether the measure repeats although it is not perfect: a reward is where it has risen to its best and stays there."""
        rose = series.n - series.same >= ROSE and series.level >= series.high
        solved = rose if is_reward else series.last >= PERFECT
        if series.same < 5 or solved or (series.same < series.n and series.sameness > CHANCE):
            return []
        message = f"{words} has been {series.last:.4g} in {series.same} measurements in a row."
        clause = "pinned" if series.same >= 7 else "repeats"
        return [Finding("", series.last, 5.0, message, {"rows": float(series.same)}, clause=clause)]
