"""The optimizer does not change the policy."""

from __future__ import annotations

from collections.abc import Sequence
from math import frexp, inf
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, View
from rldk.signals.channels import CHANNEL_METRICS, LN2, PREFERENCE_LOSSES, UNDERSIZED, policy_moves, updates_are_undersized, works
from rldk.signals.kl import is_measured, is_off
from rldk.signals.optimizer import NORMS, RATES, learning_rate
from rldk.signals.reward import SCORES, rounding_of
from rldk.signals.series import Series

__all__ = ["PolicyFrozen"]

FEW = 0.05  # share of the parameters
ZERO = 1e-6  # nats: a smaller KL is rounding
GRADIENTS = NORMS[::-1]  # that of the policy alone where it is logged: the values may still have gradients
SOME_NORMS, MAX_NORMS = 6, 64  # gradient norms from which it is known that they have 16 bits, and that are looked at
UNSURE = 30.0  # updates to wait if a KL of zero may not have been measured: by then a reward that rises has shown it
LATE, LEARNT = 50.0, 0.75  # updates after which preferences should be learnt, and the accuracy that shows it


class PolicyFrozen(Detector):
    """The weights do not change, although training continues.

    What it catches: no trainable parameters; weights that do not change from update to update, from the start or from some
        update on, or by far less than the learning rate implies; a KL from the reference that stays zero over many updates; a
        gradient norm of exactly zero in every row while the rewards differ; a preference margin that stays zero, or a
        preference loss that stays at ln 2. Gradient norms that are 16-bit numbers, most of them, show that the weights are
        kept in bf16: a note, and a warning where preferences are hardly learnt either.
    Why it matters: the run costs the same, and nothing is learnt.
    When it misfires: if the reference is the policy itself the KL is zero as well; the advice names both. A KL of 0 with a
        coefficient of 0 was not measured and is not judged, nor is a KL of 0 while the reward rises. A gradient norm of 0 in
        some rows is normal (it is that of the last micro-step). An update KL of zero is normal with one update per batch and
        is not used. Plain gradient descent changes weights by less than its learning rate.
    What to do: check which parameters require gradients (frozen layers, an adapter that is not attached), that they belong
        to the optimizer, and that the precision of the weights can hold the updates (bf16 loses those below 0.4 % of a weight).
    References: ms-swift issues 5571 and 5890 (gradient of 0 from the first row while rewards vary).
    """

    __slots__ = ("_coarse", "_norms")
    type: ClassVar[str] = "policy_frozen"
    family: ClassVar[str] = "run"
    needs: ClassVar = (
        ("policy_trainable_params", "weight_change", "kl_mean", "grad_norm", "policy_grad_norm", "preference_margin"),
    )
    panels: ClassVar = ("kl", "gradients", "reward")
    reads: ClassVar = (
        *SCORES, "kl_update", "reward_std", "reward_zero_std_frac", "kl_coef", *PREFERENCE_LOSSES, *RATES,
        "preference_accuracy", "clip_frac", "policy_total_params", *CHANNEL_METRICS,
    )  # fmt: skip
    advice: ClassVar[str] = (
        "Check which parameters require gradients and belong to the optimizer, that the reference is a separate model, and "
        "that the precision of the weights can hold the updates."
    )
    clear: ClassVar[int] = 3
    clauses: ClassVar = {
        "no_parameters": Clause(
            "the policy has no trainable parameters", "critical", "definition", persist=1, min_rows=1,
        ),
        "mostly_frozen": Clause(
            "less than a twentieth of the parameters are trained, and there is no adapter", "warning",
            "definition: an adapter adds parameters of its own; without one, a filter has left out almost everything",
            persist=1, min_rows=1,
        ),
        "weights_still": Clause(
            "the weights have not changed since the first update", "critical", "definition: a relative change of exactly 0",
            persist=6, min_rows=3,
        ),
        "weights_stopped": Clause(
            "the weights no longer change, although the learning rate is not zero", "critical",
            "definition; a scaler of half-precision gradients skips a step now and then, never this many in a row",
            persist=10, min_rows=5,
        ),
        "undersized": Clause(
            "updates change the weights by less than a tenth of the learning rate", "warning",
            "Adam moves weights by about the rate: sound runs of the corpus change by 0.9 to 43 times the rate, relative to "
            "their size; an epsilon of 1 by 0.02", persist=15, min_rows=5,
        ),
        "kl_still": Clause(
            "the KL stays zero over many updates", "critical",
            "definition: the KL of the policy to its own start is zero only if it has not moved", persist=15, min_rows=4,
        ),
        "no_gradient": Clause(
            "the gradient norm is zero in every row while rewards differ", "critical",
            "ranges of real runs: 5 failing runs and no healthy run; ms-swift issues 5571 and 5890", persist=10, min_rows=4,
        ),
        "margin_still": Clause(
            "the preference margin stays zero", "critical", "definition: the margin of two equal models is zero",
            persist=10, min_rows=4,
        ),
        "loss_still": Clause(
            "the preference loss does not leave ln 2", "warning", "definition: ln 2 is the loss of a margin of zero",
            persist=40, min_rows=8,
        ),
        "loss_never_left": Clause(
            "the preference loss has not left ln 2 although the learning rate no longer rises", "critical",
            "as above; corpus: sound runs are 0.01 below ln 2 after forty updates, a thousandth of the rate stays within 0.001",
            persist=60, min_rows=12,
        ),
        "rounded_away": Clause(
            "the weights are in bf16, and fifty updates have hardly taught anything", "warning",
            "definition: bf16 loses a step below 0.2 to 0.4 % of a weight; corpus: such runs learn two to five times slower, and "
            "sound ones give the preferred answers the higher reward three times in four by then", persist=10, min_rows=4,
        ),
        "coarse": Clause(
            "the weights are kept in bf16, which loses small steps", NOTE,
            "definition: a norm of 8 significant bits comes from gradients, and so weights, in bf16; healthy public runs have it",
        ),
    }  # fmt: skip
    _norms: int
    _coarse: int

    def reset(self) -> None:
        super().reset()
        self._norms = self._coarse = 0

    def find(self, view: View) -> Sequence[Finding]:
        found = []
        if view.get("policy_trainable_params").last == 0.0:
            found.append(Finding("", 0.0, 1.0, "The policy has no trainable parameters.", clause="no_parameters"))
        found += _mostly_frozen(view)
        weights = view.get("weight_change")
        if weights.n >= 3 and weights.stays_within(0.0) and _rewards_differ(view):
            found.append(Finding("", 0.0, 0.0, "The weights have not changed since the first update.", clause="weights_still"))
        elif not weights.n:
            found += self._by_traces(view)
        elif updates_are_undersized(view) and _rewards_differ(view) and not works(view):
            rate = learning_rate(view).slow
            message = f"An update changes the weights by {weights.slow:.2g} of their size; the learning rate is {rate:.2g}."
            found.append(Finding("", weights.slow, UNDERSIZED * rate, message, clause="undersized"))
        elif weights.last == 0.0 and weights.high > 0.0 and learning_rate(view).last != 0.0:
            message = "The weights no longer change, although the learning rate is not zero."
            found.append(Finding("", 0.0, 0.0, message, clause="weights_stopped"))
        if self._norms < MAX_NORMS or self._coarse >= SOME_NORMS:
            found += self._by_precision(view)
        margin = view.get("preference_margin")
        if margin.n >= 8 and abs(view.first(*PREFERENCE_LOSSES).level - LN2) < 2e-3 and 0.0 < abs(margin.level) < 5e-3:
            found += self._by_loss(view, margin)
        return found

    def _by_precision(self, view: View) -> list[Finding]:
        """Findings for gradient norms of 16 bits. A log that rounds to six digits hides some of them."""
        norm = view.first(*GRADIENTS)
        value = norm.last if norm.index == view.index and self._norms < MAX_NORMS else 0.0
        if 0.0 < value < inf and float(f"{value:.3g}") != value:  # three digits say nothing
            self._norms += 1
            self._coarse += _has_16_bits(value)
        if self._norms < SOME_NORMS or self._coarse < 0.6 * self._norms:
            return []
        accuracy = view.get("preference_accuracy")
        said = f"The weights are kept in bf16: {self._coarse} of {self._norms} gradient norms are 16-bit numbers"
        evidence = {"norms": float(self._norms), "of_16_bits": float(self._coarse)}
        if accuracy.ready and accuracy.n * view.steps_per_row >= LATE and accuracy.level < LEARNT:
            learnt = f"the accuracy is {accuracy.level:.2f} after {view.step} steps"
            message = f"{said}. Steps below 0.4 % of a weight are lost, and {learnt}."
            return [Finding("", accuracy.level, LEARNT, message, evidence, clause="rounded_away")]
        return [Finding("", norm.last, 0.0, f"{said}. Steps below 0.4 % of a weight are lost.", evidence, clause="coarse")]

    @staticmethod
    def _by_loss(view: View, margin: Series) -> list[Finding]:
        """Findings for a preference loss at ln 2, the loss of a zero margin."""
        loss, beta, rate = view.first(*PREFERENCE_LOSSES).level, view.get("kl_coef").last, learning_rate(view)
        if beta > 0.0 and abs(margin.level) > 0.05 * beta:
            return []  # the log-probabilities have moved; a small beta hides it in the loss
        message = f"The preference loss is {loss:.4g} after {margin.n} rows; it started at ln 2 = 0.6931."
        sure = beta > 0.0 and not rate.last > 1.01 * rate.level  # a tiny beta or a warm-up has the same loss
        clauses = ("loss_still", "loss_never_left") if sure else ("loss_still",)
        return [Finding("", loss, LN2, message, clause=clause) for clause in clauses]

    def _by_traces(self, view: View) -> list[Finding]:
        """Other signs of a policy that does not move, for runs in which the weights are not watched."""
        found = []
        kl, grad, margin = view.get("kl_mean"), view.first(*GRADIENTS), view.get("preference_margin")
        if kl.n >= 5 and kl.stays_within(ZERO) and not is_off(view) and _rewards_differ(view) and not policy_moves(view):
            message = f"KL from the reference has stayed zero for {kl.n} rows: the policy does not move."
            evidence, patience = {"kl": kl.level, "rows": float(kl.n)}, 0.0 if is_measured(view) else UNSURE
            found.append(Finding("", kl.level, ZERO, message, evidence, clause="kl_still", persist=patience))
        if grad.n >= 5 and grad.stays_within(0.0) and _rewards_differ(view) and not policy_moves(view):
            message = f"The gradient norm has been 0 in all {grad.n} rows, although rewards differ."
            found.append(Finding("", 0.0, 0.0, message, {"rows": float(grad.n)}, clause="no_gradient"))
        if margin.n >= 4 and margin.stays_within(1e-9):
            message = "The margin between chosen and rejected answers has stayed zero: the policy does not move."
            found.append(Finding("", margin.level, 0.0, message, clause="margin_still"))
        return found


def _mostly_frozen(view: View) -> list[Finding]:
    """Whether hardly any of the model's own parameters are trained."""
    settings = view.context.get("settings")
    total = view.get("policy_total_params").last
    share = view.get("policy_trainable_params").last / total if total > 0.0 else 0.0
    if not 0.0 < share < FEW or settings is None or "peft_config" in settings.raw or "lora_rank" in settings:
        return []
    message = f"Only {share:.2g} of the policy's parameters are trained, and there is no adapter."
    return [Finding("", share, FEW, message, {"share": share}, clause="mostly_frozen")]


def _has_16_bits(value: float) -> bool:
    """Whether a number is one of bf16, as far as six digits of it show: by chance one number in a thousand is."""
    bits = abs(frexp(value)[0]) * 256.0
    return abs(bits - round(bits)) <= 2e-6 * bits


def _rewards_differ(view: View) -> bool:
    groups, spread = view.get("reward_zero_std_frac"), view.get("reward_std")
    if groups.n:
        return groups.level < 0.9
    return spread.level > rounding_of(view) if spread.n else True
