"""Preference training does not learn the preference, or unlearns the language."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View
from rldk.detectors.preference.preference_degenerate import ABSURD_BETA
from rldk.signals.channels import PREFERENCE_LOSSES

__all__ = ["PreferenceUnlearnt"]

BEYOND_RECIPES = 20.0
LEARNT_LOSS, HARDLY_LEFT, AT_START = 0.66, 0.68, 0.685  # a preference loss begins at ln 2 = 0.693; 0.66 has left it
CHANCE, NEAR_CHANCE, FEW = 0.56, 0.6, 0.65  # shares of pairs in the right order


class PreferenceUnlearnt(Detector):
    """Chosen answers become unlikely, or are never ordered above rejected ones.

    What it catches: chosen answers whose log-probability has doubled in size since the start: the model unlearns what it should
        prefer. A share of correctly ordered pairs that stays near one half after many updates. A beta of 5 or
        more, critical from 20 on.
    Why it matters: the loss falls while the model forgets how to write, or there is nothing in the pairs to learn.
    When it misfires: a moderate fall of chosen answers is normal in DPO and is not reported. Hard pairs take a long time.
    What to do: lower the learning rate, raise beta, or add a supervised term on the chosen answers; if nothing is learnt,
        read some pairs: are the labels random or swapped?
    References: Razin et al. 2024, Unintentional Unalignment; Pal et al. 2024, Smaug (DPO-Positive).
    """

    __slots__ = ("lost",)
    type: ClassVar[str] = "preference_unlearnt"
    family: ClassVar[str] = "preference"
    needs: ClassVar = (("chosen_logp_mean", "preference_accuracy"),)
    panels: ClassVar = ("margin", "logps", "accuracy")
    reads: ClassVar = ("preference_margin", "policy_lr", "lr", "kl_coef", *PREFERENCE_LOSSES)
    advice: ClassVar[str] = "Lower the learning rate, raise beta, or add a supervised term on the chosen answers; read pairs."
    clear: ClassVar[int] = 8
    clauses: ClassVar = {
        "displaced": Clause(
            "chosen answers are far less likely than at the start", "critical",
            "corpus: 11 sound runs lose at most 23 % of their log-probability; learning rates far too high double it",
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

    def find(self, view: View) -> Sequence[Finding]:
        found = self._beta(view)
        chosen, accuracy = view.get("chosen_logp_mean"), view.get("preference_accuracy")
        if chosen.ready and chosen.start < 0.0:
            start = max(chosen.start, chosen.first)
            lost = (start - chosen.level) / max(abs(start), 1.0)
            if lost > 0.5 * self.lost:
                message = f"The log-probability of chosen answers fell from {start:.4g} to {chosen.level:.4g}."
                evidence = {"chosen_start": start, "chosen": chosen.level}
                clauses = ("sinking", "displaced") if lost > self.lost else ("sinking",)
                limit = (1.0 + self.lost) * start
                found += [Finding("", chosen.level, limit, message, evidence, clause=clause) for clause in clauses]
        rate = view.first("policy_lr", "lr")
        warm = not rate.last > 1.01 * rate.level  # in a warm-up little is learnt yet
        if warm:
            found += self._undecided(view, accuracy.later, view.first(*PREFERENCE_LOSSES).later)
        return found

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
        left = f", and the loss is {loss:.3g}; it began at 0.693" if loss == loss else ""
        message = f"After {rows} rows {accuracy:.0%} of the pairs are in the right order; chance gives half{left}."
        return [Finding("", accuracy, limit, message, {"accuracy": accuracy}, clause="undecided")]

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
