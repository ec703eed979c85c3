"""Preference training keeps pushing although all pairs are already separated."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.channels import PREFERENCE_LOSSES

__all__ = ["ABSURD_BETA", "PreferenceDegenerate"]

FLAT = 1e-3  # loss at which a sigmoid is flat: a margin of seven
ABSURD_BETA = 5.0  # ten times the largest of recipes
LOPSIDED, CHOSEN_UNLIKELY = 6.0, 2.2  # ratios of log-probabilities: either way, and of chosen answers to rejected ones
RANDOM = 0.8  # share of the log-probability of random tokens
TOGETHER = 1.0  # implicit reward of rejected answers
PER_SEQUENCE = 5.0  # negative log-probability above which it is a sum over tokens
NO_LOSS = 1e-6
SATURATED = 20.0  # margin at which the slope of a sigmoid is 2e-9: no gradient of single precision changes the weights


class PreferenceDegenerate(Detector):
    """Margins explode, gradients die, and both answers become unlikely.

    What it catches: the margin between chosen and rejected is far into the flat part of the sigmoid, nearly all pairs are
        ordered correctly, and the gradient is a small share of its start, or the loss is below a thousandth. It is critical
        if the chosen answers have also become far less likely than under the reference: the model unlearns what it should
        prefer; if the margins come from a beta of 5 or more; or if the loss stays below a thousandth. Also pairs of which one
        answer was far less likely than the other before training: then their length, or that they are noise, separates them;
        answers that are as unlikely as random tokens from the first rows on; and rejected answers that become far more
        likely, together with the chosen ones.
    Why it matters: the loss keeps falling while the model gets worse.
    When it misfires: easy pairs are separated quickly in every run; without a dead gradient it is not reported. A strong
        supervised term on the chosen answers makes rejected ones that resemble them more likely too.
    What to do: stop earlier; raise beta, lower the learning rate, or add a supervised term on the chosen answers.
    References: Razin et al. 2024, Unintentional Unalignment; Pal et al. 2024, Smaug (DPO-Positive).
    """

    __slots__ = ("accuracy", "dead", "displaced", "margin")
    type: ClassVar[str] = "preference_degenerate"
    family: ClassVar[str] = "preference"
    needs: ClassVar = (("preference_margin",), ("grad_norm", "preference_accuracy", *PREFERENCE_LOSSES))
    panels: ClassVar = ("margin", "logps", "accuracy")
    watches: ClassVar = ("preference_margin",)
    reads: ClassVar = (
        "chosen_reward_mean", "kl_coef", "chosen_logp_mean", "rejected_logp_mean",
        "rejected_reward_mean", "num_tokens", "batch_size", "vocab_size",
    )  # fmt: skip
    advice: ClassVar[str] = "Stop earlier; raise beta, lower the learning rate, or add a supervised term on the chosen answers."
    clauses: ClassVar = {
        "displaced": Clause(
            "the loss is flat, and chosen answers have become far less likely too", "critical",
            "Razin et al. 2024; an implicit reward of -5 is a probability of less than a hundredth at a beta of 1", persist=3,
        ),
        "flat_by_beta": Clause(
            "the loss is flat because beta is 5 or more", "critical",
            "definition: the slope of the loss is beta times that of a sigmoid at the margin, and beta scales the margin; recipes"
            " use 0.01 to 0.5 (SimPO 2 to 2.5)", persist=3,
        ),
        "saturated": Clause(
            "margins are beyond any that a loss can still change", "critical",
            "definition: at a margin of 20 the slope of a sigmoid is 2e-9; sound runs of the corpus end at 1.5", persist=3,
        ),
        "zero_loss": Clause(
            "the loss is zero, at margins beyond any that a loss can still change", "critical",
            "definition: the loss of a margin of 20 is 2e-9, which logs print as 0; two rows of it leave no doubt", persist=2,
        ),
        "flat": Clause(
            "margins are in the flat part of the sigmoid, and the gradient is near zero", "warning",
            "definition: at a margin of 8 the slope of a sigmoid is 0.0003; sound runs of the tune split end at 1.5", persist=5,
        ),
        "flat_for_long": Clause(
            "the loss has been below a thousandth for long, at margins in the flat part of the sigmoid", "critical",
            "definition: a loss below 0.001 has a slope below 0.001; more updates on these pairs teach nothing",
            persist=20, min_rows=8,
        ),
        "lopsided": Clause(
            "before training rejected answers had six times the negative log-probability of chosen ones, or chosen ones 2.2 "
            "times that of rejected ones", "warning",
            "length alone separates the pairs; 38 sound runs of the corpus start with chosen to rejected between 0.72 and 0.99, "
            "and sound runs in public with 0.24 to 2.0",
            persist=2, min_rows=2,
        ),
        "as_random": Clause(
            "from the first rows on answers are as unlikely as random tokens", "critical",
            "definition: random tokens have minus the logarithm of the vocabulary each; sound runs have a sixth of that",
            persist=3, min_rows=3,
        ),
        "both_rise": Clause(
            "rejected answers become far more likely, and chosen ones with them", "warning",
            "definition: the loss pushes rejected answers down; corpus: they end at an implicit reward of 0.2 at most", persist=8,
            min_rows=4,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "margin": Setting(8.0, "margin beyond which a sigmoid is flat", min=0.0),
        "accuracy": Setting(0.98, "share of pairs ordered correctly", min=0.5, max=1.0),
        "dead": Setting(0.05, "share of its start below which the gradient, or the loss, counts as zero", min=0.0, max=1.0),
        "displaced": Setting(-5.0, "implicit reward of the chosen answers below which they are unlearnt", max=0.0),
    }
    margin: float
    accuracy: float
    dead: float
    displaced: float

    def find(self, view: View) -> Sequence[Finding]:
        return [*self._separated(view), *self._lopsided(view), *self._as_random(view), *self._both_rise(view)]

    def _lopsided(self, view: View) -> Sequence[Finding]:
        """Whether one answer was far longer, or far less likely, than the other before anything was learnt."""
        chosen, rejected = view.get("chosen_logp_mean"), view.get("rejected_logp_mean")
        low, high = sorted((chosen.start, rejected.start))
        if not chosen.ready or not (low < -PER_SEQUENCE and high < -1.0):
            return ()
        ratio = max(LOPSIDED / CHOSEN_UNLIKELY * chosen.start / rejected.start, rejected.start / chosen.start)
        if ratio < LOPSIDED:
            return ()
        longer = "chosen" if chosen.start < rejected.start else "rejected"
        message = (
            f"In the first rows a chosen answer has a log-probability of {chosen.start:.3g} and a rejected one of "
            f"{rejected.start:.3g}: the {longer} answers are far longer, or are text that this model would not write."
        )
        evidence = {"chosen": chosen.start, "rejected": rejected.start}
        return (Finding("", ratio, LOPSIDED, message, evidence, clause="lopsided"),)

    @staticmethod
    def _as_random(view: View) -> Sequence[Finding]:
        """Whether the answers are no more likely than random tokens. Tokens of prompts are counted, so that it is a low bar."""
        chosen, tokens, pairs = view.get("chosen_logp_mean"), view.get("num_tokens"), view.get("batch_size").last
        vocabulary = view.get("vocab_size").last
        if not 3 <= tokens.n <= 10 or not vocabulary > 1.0 or not pairs > 0.0:
            return ()
        length = (tokens.last - tokens.first) / ((tokens.n - 1) * view.steps_per_row * 2.0 * pairs)
        limit = -RANDOM * log(vocabulary) * length
        if not chosen.level < limit < 0.0:
            return ()
        message = (
            f"Chosen answers have a log-probability of {chosen.level:.3g}, and random tokens would have "
            f"{limit / RANDOM:.3g}: the tokens do not match the predictions."
        )
        return (Finding("", chosen.level, limit, message, {"chosen": chosen.level, "tokens": length}, clause="as_random"),)

    @staticmethod
    def _both_rise(view: View) -> Sequence[Finding]:
        rejected, chosen = view.get("rejected_reward_mean"), view.get("chosen_reward_mean")
        if not rejected.ready or not rejected.level > max(TOGETHER, chosen.level - rejected.level) or not chosen.level > TOGETHER:
            return ()
        rose = f"The implicit reward of rejected answers has risen to {rejected.level:.3g}"
        message = f"{rose}, that of chosen ones to {chosen.level:.3g}."
        evidence = {"rejected": rejected.level, "chosen": chosen.level}
        return (Finding("", rejected.level, TOGETHER, message, evidence, clause="both_rise"),)

    def _separated(self, view: View) -> Sequence[Finding]:
        margin, accuracy = view.get("preference_margin"), view.get("preference_accuracy")
        loss = view.first(*PREFERENCE_LOSSES)
        if margin.last > SATURATED and 0.0 <= loss.last < NO_LOSS:
            message = f"The margin is {margin.last:.3g} and the loss {loss.last:.2g}: nothing is left to learn from these pairs."
            return (Finding("", margin.last, SATURATED, message, {"margin": margin.last}, clause="zero_loss"),)
        if margin.n < view.rows(10, 4) or margin.level < self.margin or (accuracy.ready and accuracy.level < self.accuracy):
            return ()
        pull = view.first("grad_norm", *PREFERENCE_LOSSES)
        flat = 0.0 <= loss.level < FLAT
        if not pull.ready or not (flat or abs(pull.level) <= self.dead * abs(pull.start)):
            return ()
        chosen = view.get("chosen_reward_mean")
        displaced = chosen.ready and chosen.level < self.displaced
        also = f", and the chosen answers have become less likely ({chosen.level:.3g})" if displaced else ""
        message = f"The margin is {margin.level:.3g} and the gradient {pull.level:.2g}, down from {pull.start:.2g}{also}."
        evidence = {"margin": margin.level, "pull": pull.level}
        by_beta = "flat_by_beta" if view.get("kl_coef").last >= ABSURD_BETA else ""
        saturated = "saturated" if margin.level > SATURATED else ""
        worse = "displaced" if displaced else by_beta or saturated
        clauses = [clause for clause in ("flat", worse, "flat_for_long" if flat else "") if clause]
        return [Finding("", margin.level, self.margin, message, evidence, clause=clause) for clause in clauses]

    def advice_for(self, view: View, finding: Finding) -> str:
        if finding.clause == "lopsided":
            return "Compare the lengths of chosen and rejected answers, balance them, or use a loss that is normalised by length."
        if finding.clause in ("as_random", "both_rise"):
            return (
                "Check that labels are shifted by one token against the logits, that policy, reference and data use one "
                "tokenizer, and that precomputed reference log-probabilities belong to the same rows."
            )
        return self.advice
