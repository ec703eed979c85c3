"""The updates are too large."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import ClassVar

from rldk.core.text import listed
from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View
from rldk.signals.channels import CHANNEL_METRICS, harm, works
from rldk.signals.optimizer import RATES, learning_rate, with_rate
from rldk.signals.reward import SCORES, score_of

__all__ = ["LARGE_UPDATE", "MANY_PASSES", "LearningRateTooHigh"]

ABSURD = 0.5  # no optimizer of a language model survives this
HIGH, BEYOND = 5e-3, 1.5e-2
TORN = 0.1  # relative change of the weights that is too large for one update
LANGUAGE = ("kl_mean", "rollout_length_mean", "preference_margin", "eos_count", "vocab_size")
"""Metrics that only runs of language models log."""
SANE = 1e-3  # highest rate that recipes use for language models, adapters included
JUMP, LEAP = 4.0, 9.9
LARGE_UPDATE = 0.12  # KL of an update, in nats per token
MANY_PASSES = 10  # over one batch: then large updates come from these, and `batch_overused` reports them
LATE, NO_TREND = 30, 2.0  # updates after which a reward should have a trend, and the t value that chance reaches once in forty
SETTLED = 5  # rows after which a rise of the learning rate is not a warm-up


class LearningRateTooHigh(Detector):
    """The learning rate is too high: by its value, by a jump, or by the size of the updates.

    What it catches: a learning rate above 0.005; above 0.015 for a language model, and above 0.5 for any model, it is
        critical at once. Also a rate that jumps above four times its highest value after the warm-up, and updates that
        repeatedly move the policy by more than 0.12 nats per token (1e-4 to 0.02 is usual) or change its weights by a tenth.
        Each is critical once the reward, the entropy, the KL or the length is damaged too; large updates also if the reward has
        not risen after thirty updates.
    Why it matters: the damage is done in the first rows, and then the run looks calm: a collapsed policy no longer moves, its
        KL is constant and its entropy 0.
    When it misfires: single large updates are normal, so the median is judged. A warm-up raises the learning rate step by step,
        and a restarted schedule returns to its highest value, not above. Models of a few hundred parameters tolerate rates
        above 0.005. Large updates are only a note while the reward thrives and nothing is damaged.
    What to do: lower the learning rate by a factor of three to ten, warm it up, use fewer epochs per batch, and set a target
        for the KL of an update at which its epochs end.
    References: Huang et al. 2022, The 37 Implementation Details of Proximal Policy Optimization.
    """

    __slots__ = ("_highest", "_jumped", "_rows", "high", "update_limit")
    type: ClassVar[str] = "learning_rate_too_high"
    family: ClassVar[str] = "run"
    needs: ClassVar = (("kl_update", *RATES, "weight_change"),)
    panels: ClassVar = ("lr", "kl", "gradients")
    reads: ClassVar = (*SCORES, *CHANNEL_METRICS, "preference_margin", "num_iterations")
    advice: ClassVar[str] = (
        "Lower the learning rate by a factor of three to ten, warm it up, use fewer epochs per batch, and set a target for "
        "the KL of an update."
    )
    clear: ClassVar[int] = 10
    clauses: ClassVar = {
        "absurd": Clause(
            "the learning rate is above 0.5", "critical", "no optimizer of a language model survives this", persist=1, min_rows=1,
        ),
        "beyond_any": Clause(
            "the learning rate of a language model is above 0.015", "critical",
            "ranges of real runs: fifty times the highest of healthy runs", persist=2, min_rows=1,
        ),
        "weights_torn": Clause(
            "updates change the weights by more than a tenth, and another channel left its range", "critical",
            "trained models change by 0.005 to 0.03 in a healthy update; only untrained ones tolerate more",
            persist=2, min_rows=1,
        ),
        "leapt": Clause(
            "the learning rate jumped to ten times its highest value, above 0.001", "critical",
            "healthy language-model runs use 1e-7 to 1e-3, and schedules do not jump", persist=1, min_rows=1,
        ),
        "jumped": Clause(
            "the learning rate jumped above four times its highest value", "warning", "schedules do not jump after their warm-up",
            persist=1, min_rows=1,
        ),
        "high_with_damage": Clause(
            "the learning rate is above 0.005 or has jumped, and another channel left its range", "critical",
            "corroboration by an independent channel", persist=3, min_rows=2,
        ),
        "high": Clause(
            "the learning rate is above 0.005", "warning",
            "ranges of real runs: healthy ones use up to 3e-4, tiny models up to 2e-3", persist=1, min_rows=1,
        ),
        "large_updates_with_damage": Clause(
            "updates are far too large, and another channel left its range", "critical",
            "corroboration by an independent channel",
            persist=3, min_rows=2,
        ),
        "large_updates": Clause(
            "updates repeatedly move the policy by more than 0.12 nats per token", "warning",
            "ranges of real runs: 16 failing runs and no healthy run; the first updates of sound runs may be as large",
            persist=8, min_rows=2,
        ),
        "large_updates_for_nothing": Clause(
            "updates are far too large, and the reward has not improved", "critical",
            "as above; of all recorded and public runs no sound one has such updates and a reward without a trend",
            persist=8, min_rows=4,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "update_limit": Setting(LARGE_UPDATE, "KL of an update that is far too large, in nats per token", min=0.0),
        "high": Setting(HIGH, "learning rate that is too high", min=0.0),
    }
    update_limit: float
    high: float
    _highest: float
    _rows: int
    _jumped: float

    def reset(self) -> None:
        super().reset()
        self._highest = self._jumped = 0.0
        self._rows = 0

    def find(self, view: View) -> Sequence[Finding]:
        found = self._rate(view)
        weights = view.get("weight_change")
        torn = weights.n >= 2 and weights.index == view.index and min(weights.last, weights.level) > TORN
        if torn and (damaged := harm(view)):
            message = f"Each update changes the weights by {weights.level:.0%}, and {listed(damaged)}."
            found.append(Finding("", weights.level, TORN, message, {"weight_change": weights.level}, clause="weights_torn"))
        update = view.get("kl_update")
        if update.n >= 3 and update.level > self.update_limit and not view.get("num_iterations").last >= MANY_PASSES:
            message = f"Updates move the policy by {update.level:.3g} nats per token; 1e-4 to 0.02 is usual"
            evidence = {"kl_update": update.level}
            severity = NOTE if works(view) else ""
            found.append(Finding(severity, update.level, self.update_limit, f"{message}.", evidence, clause="large_updates"))
            if damaged := harm(view):
                text = f"{message}, and {listed(damaged)}."
                found.append(Finding("", update.level, self.update_limit, text, evidence, clause="large_updates_with_damage"))
            if score_of(view).n >= view.rows(LATE, 15) and view.reward.trend < NO_TREND:
                text = f"{message}, and the reward has not risen (t = {view.reward.trend:.2g})."
                found.append(Finding("", update.level, self.update_limit, text, evidence, clause="large_updates_for_nothing"))
        return found

    def _rate(self, view: View) -> list[Finding]:
        series = learning_rate(view)
        rate = series.last
        if series.index != view.index or not 0.0 < rate < inf:
            return []
        before = self._highest
        self._rows += 1
        self._highest = max(before, rate)
        if self._rows > SETTLED and rate > JUMP * before > 0.0:
            self._jumped = before
        if rate <= min(self.high, BEYOND) and not self._jumped:
            return []
        found = []
        evidence = {"lr": rate}
        if rate > ABSURD:
            message = f"The learning rate is {rate:.3g}."
            found.append(Finding("", rate, ABSURD, message, evidence, clause="absurd"))
        elif rate > BEYOND and any(view.get(name).n for name in LANGUAGE):
            message = f"The learning rate is {rate:.3g}; recipes for language models use 1e-7 to 1e-3."
            found.append(Finding("", rate, BEYOND, message, evidence, clause="beyond_any"))
        if self._jumped and rate > JUMP * self._jumped:
            message = f"The learning rate jumped from {self._jumped:.3g} to {rate:.3g}."
            leapt = rate > LEAP * self._jumped and rate > SANE
            found.append(Finding("", rate, JUMP * self._jumped, message, evidence, clause="leapt" if leapt else "jumped"))
        if rate > self.high:
            message = f"The learning rate is {rate:.3g}; recipes use 1e-7 to 1e-3."
            found.append(Finding("", rate, self.high, message, evidence, clause="high"))
        if found and (damaged := harm(view)):
            text = f"The learning rate is {rate:.3g}, and {listed(damaged)}."
            found.append(Finding("", rate, self.high, text, evidence, clause="high_with_damage"))
        return found

    def advice_for(self, view: View, finding: Finding) -> str:
        return with_rate(self.advice, view)
