"""Responses keep growing."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import ClassVar

from rldk.core.text import listed
from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View
from rldk.signals.channels import CHANNEL_METRICS, harm, length_words
from rldk.signals.reward import SCORES, SLOW_NOISE, score_of

__all__ = ["LengthRunaway"]

BEGUN = 1.5  # times their usual length from which responses have begun to grow
FAR = 1.5  # times the limit up to which a reward that stays at its best is enough
SURELY = 2.0 * SLOW_NOISE  # times the noise of a row: two standard errors of a mean of twenty rows
NOISE = 3.0  # times the spread of the first lengths by which responses must be longer


class LengthRunaway(Detector):
    """Responses have grown many times over.

    What it catches: a mean length of several times its start and beyond the spread it had there. Critical if the reward has
        fallen since, or a strong channel (entropy, KL, endings) has left its range.
    Why it matters: text that never ends cannot be scored, costs the most to sample, and teaches the policy to go on writing.
    When it misfires: reasoning models write longer answers as they learn; if the reward has risen while they grew, and nothing
        else is out of range, it is a note. A run whose responses fill the limit from the start is not judged.
    What to do: check that the end token is learnt and not masked; penalise over-long responses, or do not train on
        truncated ones; raise the limit if the answers need it.
    References: Yu et al. 2025, DAPO (overlong reward shaping).
    """

    __slots__ = ("_before", "factor")
    type: ClassVar[str] = "length_runaway"
    family: ClassVar[str] = "length"
    needs: ClassVar = (("rollout_length_mean",),)
    panels: ClassVar = ("length", "truncated")
    reads: ClassVar = (*SCORES, *CHANNEL_METRICS)
    advice: ClassVar[str] = (
        "Check that the end token is learnt and not masked; penalise or leave out over-long responses; raise the limit if needed."
    )
    clear: ClassVar[int] = 8
    clauses: ClassVar = {
        "with_damage": Clause(
            "responses grew several times over while the reward fell or another channel left its range", "critical",
            "corroboration by an independent channel", persist=6, min_rows=3,
        ),
        "grown": Clause(
            "responses grew several times over, and the reward has not improved since they began to grow", "warning",
            "public runs: healthy runs that learn to reason grow up to fourfold", persist=6, min_rows=3,
        ),
        "reasoning": Clause(
            "responses grew several times over while the reward rose", NOTE, "as above", persist=6, min_rows=3,
        ),
    }  # fmt: skip
    settings: ClassVar = {"factor": Setting(4.0, "factor over its start that the length must reach", min=1.0)}
    factor: float
    _before: float  # the reward when responses began to grow

    def reset(self) -> None:
        super().reset()
        self._before = nan

    def find(self, view: View) -> Sequence[Finding]:
        length = view.get("rollout_length_mean")
        if not length.ready:
            return ()
        usual, score = max(length.start, length.base), score_of(view)
        if not length.level > BEGUN * usual:
            self._before = score.slow
        if not length.level > max(self.factor * usual, usual + NOISE * length.scale) or not usual > 0.0:
            return ()
        limit, damaged = self.factor * usual, harm(view, besides="length")
        what, unit = length_words(view)
        message = f"{what} have grown from {usual:.4g} to {length.level:.4g}{unit} on average"
        evidence = {"length_start": usual, "length": length.level}
        gain, sure = score.slow - self._before, SURELY * score.noise
        enough = gain > sure or (gain > -sure and length.level < FAR * limit)
        gained = enough and view.reward.improves(score)
        clause = "reasoning" if gained and not damaged else "grown"
        found = [Finding("", length.level, limit, f"{message}.", evidence, clause=clause)]
        if damaged:
            text = f"{message}, while {listed(damaged)}."
            found.append(Finding("", length.level, limit, text, evidence, clause="with_damage"))
        return found
