"""Preference training does not learn the preference, or unlearns the language."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View
from rldk.detectors.preference.preference_degenerate import ABSURD_BETA
from rldk.signals.channels import LN2, PREFERENCE_LOSSES
from rldk.signals.optimizer import RATES, learning_rate
from rldk.signals.reward import SLOW_NOISE
from rldk.signals.series import EARLY, Series

__all__ = ["PreferenceUnlearnt"]

BEYOND_RECIPES = 20.0
LEARNT_LOSS, HARDLY_LEFT, AT_START = 0.66, 0.68, 0.685  # a preference loss begins at ln 2 = 0.693; 0.66 has left it
CHANCE, NEAR_CHANCE, FEW = 0.56, 0.6, 0.65  # shares of pairs in the right order
APART = 0.15  # share of pairs by which training data must be ahead of held-out data
EVALUATIONS, MORE_EVALUATIONS = 3, 5
BEYOND_NOISE = 3.0  # noises of a row: four standard errors of a difference between two medians of five
USUAL_LOSS, UNUSUAL_LOSS = 1.5, 3.0
"""Shares of its size that the log-probability of chosen answers may lose while their order is learnt. Seven public runs of one
recipe (a beta of 0.01, accuracies of 0.73 to 0.75) lose 0.77 to 1.32."""
WORSE = 1.1 * LN2  # loss of a model that is worse than one without any training
SURE = 2.0  # standard errors
SLIPPED = 0.05  # share of held-out pairs by which the median of five evaluations must have fallen
LEAD, SURELY_LOST = 0.1, 6.0  # lead over chance that counts as learnt, and standard errors of a fall


class PreferenceUnlearnt(Detector):
    """Chosen answers become unlikely, or are never ordered above rejected ones.

    What it catches: chosen answers whose log-probability has doubled in size since the start: the model unlearns what it should
        prefer. A share of correctly ordered pairs that stays near one half after many updates, of the training data, or of
        held-out pairs alone: then the pairs are memorised. Pairs that are learnt the wrong way round. A beta of 5 or
        more, critical from 20 on.
    Why it matters: the loss falls while the model forgets how to write, or there is nothing in the pairs to learn.
    When it misfires: a fall of chosen answers is normal in DPO with a small beta: while the order of the pairs is learnt, a fall
        by up to one and a half times their size is a note. Hard pairs take a long time.
    What to do: lower the learning rate, raise beta, or add a supervised term on the chosen answers; if nothing is learnt,
        read some pairs: are the labels random or swapped?
    References: Razin et al. 2024, Unintentional Unalignment; Pal et al. 2024, Smaug (DPO-Positive).
    """

    __slots__ = ("_best", "lost")
    type: ClassVar[str] = "preference_unlearnt"
    family: ClassVar[str] = "preference"
    needs: ClassVar = (("chosen_logp_mean", "preference_accuracy", "preference_margin"),)
    panels: ClassVar = ("margin", "logps", "accuracy")
    reads: ClassVar = (
        *RATES, "kl_coef", "eval_preference_accuracy", "eval_loss", *PREFERENCE_LOSSES,
    )  # fmt: skip
    advice: ClassVar[str] = "Lower the learning rate, raise beta, or add a supervised term on the chosen answers; read pairs."
    clear: ClassVar[int] = 8
    clauses: ClassVar = {
        "displaced": Clause(
            "chosen answers are far less likely than at the start", "critical",
            "corpus: 11 sound runs lose at most 23 % of their log-probability; learning rates far too high double it. Where the "
            "order of the pairs is learnt, public runs with a beta of 0.01 lose up to 132 %, and three times as much is a loss",
            persist=6, min_rows=3,
        ),
        "sinking": Clause(
            "chosen answers are less likely than at the start", "warning", "as above, at half of it", persist=10, min_rows=4,
        ),
        "undecided": Clause(
            "chosen answers are not ordered above rejected ones", "warning",
            "corpus: from row 24 on, 18 healthy runs order 68 % of the pairs or more, and three of four with random labels less "
            "than 60 %; from row 40 on, no sound run orders less than 65 % with a loss above 0.68", persist=8, min_rows=4,
        ),
        "inverted": Clause(
            "rejected answers are ordered above chosen ones, far beyond chance, at a loss above that of a model that has learnt "
            "nothing", "critical",
            "definition: chance orders half of the pairs, at a loss of ln 2; six standard errors of a mean of twenty rows are no "
            "chance. In the first rows fewer than half may be in order, at hardly more than ln 2",
            persist=5, min_rows=3,
        ),
        "unlearns": Clause(
            "the order of the pairs was learnt, and is half lost", "warning",
            "definition: one half is what chance gives; six standard errors of a mean of twenty rows are no chance",
            persist=5, min_rows=3,
        ),
        "no_margin": Clause(
            "chosen answers have no higher reward than rejected ones, after many rows", "warning",
            "definition: the mean margin of a policy that has learnt nothing is zero; a mean of twenty rows exceeds two of its "
            "standard errors by chance once in forty times", persist=8, min_rows=4,
        ),
        "held_out_chance": Clause(
            "held-out pairs are ordered no better than by chance, unlike those of the training data", "warning",
            "definition: chance orders half of the pairs; six sound public runs order 62 % of the held-out ones or more",
            persist=1,
        ),
        "held_out_slips": Clause(
            "fewer held-out pairs are in the right order than before, at a loss above that of a model that has learnt nothing",
            "warning", "as `held_out_worse`; a loss alone may rise with the size of margins while the order is still learnt",
            persist=1,
        ),
        "held_out_worse": Clause(
            "held-out pairs are ordered no better than by chance, at a loss above that of a model that has learnt nothing",
            "critical",
            "definition: ln 2 is the loss of a margin of zero; no sound public run with held-out pairs has more", persist=1,
        ),
        "beta_huge": Clause(
            "beta is 2 or more", NOTE, "recipes use 0.01 to 0.5; above that, the loss is flat after a few steps",
            persist=1, min_rows=1,
        ),
        "beta_absurd": Clause(
            "beta is 5 or more", "warning", "ten times the largest value of recipes: the loss is flat after one step",
            persist=2, min_rows=1,
        ),
        "beta_beyond_recipes": Clause(
            "beta is 20 or more", "critical",
            "twice the largest value of any recipe (SimPO: 2 to 10, DPO: 0.01 to 0.5): margins grow while the policy stays",
            persist=8, min_rows=2,
        ),
        "beta_tiny": Clause("beta is below 0.002", NOTE, "nothing keeps the policy near its reference", persist=1, min_rows=1),
    }  # fmt: skip
    settings: ClassVar = {"lost": Setting(1.0, "share of its size by which the log-probability must have fallen", min=0.1)}
    lost: float
    _best: float

    def reset(self) -> None:
        super().reset()
        self._best = 0.0

    def find(self, view: View) -> Sequence[Finding]:
        found = self._beta(view)
        chosen, accuracy = view.get("chosen_logp_mean"), view.get("preference_accuracy")
        if chosen.ready and chosen.start < 0.0:
            found += self._displaced(view, chosen)
        rate = learning_rate(view)
        warm = not rate.last > 1.01 * rate.level  # in a warm-up little is learnt yet
        if warm and accuracy.n:
            found += self._undecided(view, accuracy.later, view.first(*PREFERENCE_LOSSES).later)
        elif warm:
            found += self._no_margin(view)
        if accuracy.n >= EARLY:
            found += self._inverted(view, accuracy)
        if accuracy.n >= 2 * EARLY:  # the first rows have no weight in the slow mean any more
            found += self._unlearns(accuracy)
        if view.get("eval_preference_accuracy").n >= EVALUATIONS:
            found += self._held_out(view)
        return found

    @staticmethod
    def _inverted(view: View, accuracy: Series) -> list[Finding]:
        """Whether the policy learns the opposite of what the pairs say, as with a wrong sign or swapped answers."""
        loss, behind = view.first(*PREFERENCE_LOSSES).later, 0.5 - accuracy.later
        if not behind > max(LEAD, SURELY_LOST * SLOW_NOISE * accuracy.noise) or not loss > WORSE:
            return []
        message = (
            f"Only {accuracy.later:.0%} of the pairs are in the right order; chance gives half. The loss is {loss:.3g}, above "
            "the 0.693 of a model that has learnt nothing."
        )
        evidence = {"accuracy": accuracy.later, "loss": loss}
        return [Finding("", accuracy.later, 0.5 - LEAD, message, evidence, clause="inverted")]

    def _unlearns(self, accuracy: Series) -> list[Finding]:
        """Whether the order of the pairs was learnt and is lost again: half of the lead over chance, beyond the noise."""
        self._best = max(self._best, accuracy.slow)
        lead, lost = self._best - 0.5, self._best - accuracy.slow
        if not lead > LEAD or not lost > max(0.5 * lead, SURELY_LOST * SLOW_NOISE * accuracy.noise):
            return []
        message = f"The share of pairs in the right order fell from {self._best:.0%} to {accuracy.slow:.0%}; chance gives half."
        evidence = {"best": self._best, "accuracy": accuracy.slow}
        return [Finding("", accuracy.slow, self._best - 0.5 * lead, message, evidence, clause="unlearns")]

    @staticmethod
    def _no_margin(view: View) -> list[Finding]:
        """Whether the mean margin is zero except for its noise, in a log without the share of pairs in the right order."""
        margin = view.get("preference_margin")
        if margin.n < view.rows(100, 40) or not margin.slow < SURE * SLOW_NOISE * margin.noise:
            return []
        chance = f"no more than chance (noise: {margin.noise:.2g} per row)"
        message = f"After {margin.n} rows the mean margin is {margin.slow:.2g}, {chance}."
        return [Finding("", margin.slow, SURE * SLOW_NOISE * margin.noise, message, clause="no_margin")]

    @staticmethod
    def _held_out(view: View) -> list[Finding]:
        """Whether pairs are memorised: held-out ones are ordered no better than by chance, and training data is ahead."""
        trained, held_out = view.get("preference_accuracy").later, view.get("eval_preference_accuracy")
        evaluated = view.get("eval_loss").level
        known = held_out.n >= MORE_EVALUATIONS and evaluated > WORSE and view.first(*PREFERENCE_LOSSES).later < LN2
        fell = held_out.high - held_out.level
        if known and fell > SLIPPED and not held_out.level < CHANCE:
            message = (
                f"Held-out pairs in the right order fell from {held_out.high:.0%} to {held_out.level:.0%}, and their loss rose "
                f"to {evaluated:.3g}; it is 0.693 without any training."
            )
            return [Finding("", evaluated, WORSE, message, {"fell": fell}, clause="held_out_slips")]
        if not held_out.level < CHANCE:
            return []
        found = []
        said = f"{held_out.level:.0%} of the held-out pairs are in the right order, and {trained:.0%} of the training data"
        evidence = {"held_out": held_out.level, "trained": trained}
        if trained - held_out.level > APART:
            found.append(Finding("", held_out.level, CHANCE, f"{said}.", evidence, clause="held_out_chance"))
        if known:
            message = f"{said}; the held-out loss is {evaluated:.3g}, and 0.693 without any training."
            found.append(Finding("", evaluated, WORSE, message, evidence, clause="held_out_worse"))
        return found

    def _displaced(self, view: View, chosen: Series) -> list[Finding]:
        """Whether chosen answers have become unlikely. If the order of the pairs is learnt, a fall of their size is usual."""
        start = max(chosen.start, chosen.first)
        fall = start - chosen.level
        lost = fall / max(abs(start), 1.0)
        if not lost > 0.5 * self.lost or not fall > BEYOND_NOISE * chosen.noise:
            return []
        message = f"The log-probability of chosen answers fell from {start:.4g} to {chosen.level:.4g}."
        evidence = {"chosen_start": start, "chosen": chosen.level}
        accuracy, loss = view.get("preference_accuracy").later, view.first(*PREFERENCE_LOSSES).later
        learnt = accuracy > FEW and not loss > LEARNT_LOSS
        if learnt and lost < USUAL_LOSS * self.lost:
            return [Finding(NOTE, chosen.level, (1.0 + self.lost) * start, message, evidence, clause="sinking")]
        limit = UNUSUAL_LOSS * self.lost if learnt else self.lost
        clauses = ("sinking", "displaced") if lost > limit else ("sinking",)
        return [Finding("", chosen.level, (1.0 + limit) * start, message, evidence, clause=clause) for clause in clauses]

    @staticmethod
    def _undecided(view: View, accuracy: float, loss: float) -> list[Finding]:
        """Whether pairs are in the right order hardly more often than by chance, and the loss agrees."""
        rows = view.get("preference_accuracy").n
        if rows >= view.rows(40, 12):
            chance = accuracy < CHANCE and not loss < LEARNT_LOSS
            limit = CHANCE if chance else FEW
            holds = chance or (accuracy < FEW and loss > HARDLY_LEFT)
        else:
            limit = NEAR_CHANCE
            holds = rows >= view.rows(28, 10) and accuracy < NEAR_CHANCE and loss > AT_START
        if not holds:
            return []
        left = f", and the loss is {loss:.3g}; without any training it is 0.693" if loss == loss else ""
        message = f"After {rows} rows {accuracy:.0%} of the pairs are in the right order; chance gives half{left}."
        return [Finding("", accuracy, limit, message, {"accuracy": accuracy}, clause="undecided")]

    def advice_for(self, view: View, finding: Finding) -> str:
        if finding.clause == "inverted":
            return "Check that chosen and rejected answers are not swapped when they reach the loss, and check its sign."
        return self.advice

    @staticmethod
    def _beta(view: View) -> list[Finding]:
        beta = view.get("kl_coef").last
        message = f"Beta is {beta:.3g}; recipes use 0.01 to 0.5."
        clauses = {
            "beta_beyond_recipes": (BEYOND_RECIPES, inf), "beta_absurd": (ABSURD_BETA, inf), "beta_huge": (2.0, ABSURD_BETA),
            "beta_tiny": (1e-12, 2e-3),
        }  # fmt: skip
        return [
            Finding("", beta, high if high < 1.0 else low, message, {"beta": beta}, clause=clause)
            for clause, (low, high) in clauses.items()
            if low <= beta < high
        ]
