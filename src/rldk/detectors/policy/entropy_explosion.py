"""The policy has become noise."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View
from rldk.signals.reward import SCORES, score_of

__all__ = ["EntropyExplosion"]

TEXT = 4.0  # nats per token above which an entropy that has doubled is no longer text; good models have 0.1 to 2


class EntropyExplosion(Detector):
    """The policy's entropy is far above where it started, or near that of random tokens.

    What it catches: an entropy per token that has risen by 1 nat and doubled; and one near the logarithm of the vocabulary
        size, which is that of random tokens, at any time from the first row on.
    Why it matters: such a policy does not recover, because random text earns no reward to learn from.
    When it misfires: a healthy run that explores may double or triple a small entropy, so a rise by an absolute amount is
        required as well. While the reward is near its best it is only a warning.
    What to do: stop, go back to the last good checkpoint, lower the learning rate, the sampling temperature or the entropy
        bonus, and clip the gradients; look at the samples around the onset.
    References: Cui et al. 2025, The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models.
    """

    __slots__ = ("factor", "rise")
    type: ClassVar[str] = "entropy_explosion"
    family: ClassVar[str] = "policy"
    needs: ClassVar = (("entropy_mean",),)
    panels: ClassVar = ("entropy", "reward")
    reads: ClassVar = (*SCORES, "vocab_size")
    advice: ClassVar[str] = (
        "Go back to the last good checkpoint; lower the learning rate, the temperature or the entropy bonus, and clip gradients."
    )
    clauses: ClassVar = {
        "exploded": Clause(
            "the entropy rose by 1 nat and doubled", "critical",
            "public and own runs: 5 failing runs and no healthy run", persist=8, min_rows=4,
        ),
        "rising": Clause(
            "the entropy rose by 0.6 nats and by half, and the reward does not improve", "warning",
            "corpus: 95 % of 97 sound runs rise by less than 0.31 nats, and the largest rise is 0.65", persist=40, min_rows=6,
        ),
        "random": Clause(
            "the entropy has become that of random tokens", "critical",
            "definition: ln(vocabulary) is the entropy of a uniform choice", persist=3, min_rows=2,
        ),
        "random_from_start": Clause(
            "the entropy is that of random tokens since the first row, or near it while the reward does not rise", "warning",
            "definition, at 93 % and at three quarters of ln(vocabulary); language models have about a tenth of it",
            persist=30, min_rows=8,
        ),
        "untrained": Clause(
            "the entropy is near that of random tokens since the first row", NOTE,
            "as above: a model that was never trained, or a temperature far above 1", persist=3, min_rows=2,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "factor": Setting(2.0, "factor over its start that the entropy must reach", min=1.0),
        "rise": Setting(1.0, "nats by which it must have risen", min=0.0),
    }
    factor: float
    rise: float

    def find(self, view: View) -> Sequence[Finding]:
        entropy = view.get("entropy_mean")
        if entropy.n < 3:
            return ()
        level = entropy.level
        start = min(entropy.first, entropy.start, entropy.base) if entropy.ready else entropy.first
        vocabulary = view.get("vocab_size").last
        highest = log(vocabulary) if vocabulary > 1.0 else inf
        if not level > start + min(self.rise, 0.6) and not level > 0.75 * highest:
            return ()
        found, evidence = [], {"entropy_start": start, "entropy": level}
        message = f"Entropy rose from {start:.3g} to {level:.3g} nats per token."
        if level > start + 0.6 and level > 1.5 * start and not view.reward.improves(score_of(view)):
            found.append(Finding("", level, start + 0.6, message, evidence, clause="rising"))
        if level > start + self.rise and level > self.factor * start:
            sure = level > TEXT and level > 4.0 * start  # no wait: this is no longer text
            severity = "warning" if view.reward.thrives(score_of(view)) and level < TEXT else ""
            found.append(Finding(severity, level, start + self.rise, message, evidence, sure, clause="exploded"))
        if level > 0.75 * highest:
            message = f"Entropy is {level:.3g} nats per token; random tokens have {highest:.3g}."
            clauses = ["random"] if level > 0.93 * highest else []
            if start > 0.7 * highest:  # it was so from the first row
                stays = level > 0.93 * highest or not view.reward.improves(score_of(view))
                clauses = ["untrained", *(["random_from_start"] if stays else [])]
            found += [Finding("", level, 0.75 * highest, message, evidence, clause=clause) for clause in clauses]
        return found
