"""The reference is not the model that training started from."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, View
from rldk.signals.channels import policy_moves, weights_stayed
from rldk.signals.kl import is_measured, mean_length, unit_of
from rldk.signals.optimizer import NORMS, gradient_norm
from rldk.signals.reward import SCORES

__all__ = ["ReferenceWrong"]

ZERO = 1e-6
FIRST = {"token": 0.1, "sequence": 1.0, "": 1.0}
UNRELATED = 1.0  # nats per token
BY_UPDATES = 20.0  # the same where updates came before the first row: a policy that has left its reference is at 3 to 10
APART = 1.0  # implicit reward of both answers of a pair


class ReferenceWrong(Detector):
    """The KL is zero although the policy moves, or is far from zero before it has moved.

    What it catches: a KL that stays at exactly zero while rewards or updates show that the policy changes: the reference is the
        policy itself. A KL above 1 nat per response (0.1 per token) in the first row is a note: the
        reference is another model, dropout is active, or the row comes after many updates. Above 1 nat per token it is a
        warning: no related model is that far away (above 20 nats, if updates came before that row). So are implicit rewards
        above 1 of both answers in the first row of preference training: they are 0 by definition until the policy has moved, and
        negative without a reference.
    Why it matters: a penalty on a KL of zero has no effect. A wrong reference pulls the policy towards another model.
    When it misfires: a policy that does not move has a KL of zero too; that is `policy_frozen`. With a coefficient of 0 many
        trainers load no reference and log a KL of 0, which is not judged.
    What to do: load the reference as a separate model, from the weights that training starts from, and switch dropout off
        where log-probabilities are computed.
    References: TRL copies the model for the reference unless it is given one.
    """

    __slots__ = ()
    type: ClassVar[str] = "reference_wrong"
    family: ClassVar[str] = "kl_schedule"
    needs: ClassVar = (("kl_mean", "reference_is_policy", "dropout_active", "chosen_reward_mean"),)
    panels: ClassVar = ("kl", "reward")
    reads: ClassVar = (
        *SCORES, "kl_update", "weight_change", "kl_coef", "target_kl", "entropy_mean", "clip_frac", *NORMS,
        "rollout_length_mean", "entropy_sequence", "rejected_reward_mean",
    )  # fmt: skip
    advice: ClassVar[str] = "Load the reference as a separate model, from the weights that training starts from."
    clear: ClassVar[int] = 5
    clauses: ClassVar = {
        "is_the_policy": Clause(
            "the KL stays zero while the policy moves", "warning",
            "definition: the KL of two models is zero only if they are the same", persist=10, min_rows=4,
        ),
        "shares_weights": Clause(
            "the reference is the policy", "warning", "definition: the trainer uses one object for both", persist=2, min_rows=1,
        ),
        "dropout": Clause(
            "dropout is active while log-probabilities are computed", NOTE, "TRL switches it off; dropout makes the KL noisy",
            persist=1, min_rows=1,
        ),
        "is_another": Clause(
            "the KL is far from zero in the first row", NOTE,
            "public and own runs: 9 failing runs and no healthy run above 1 nat per response; harmless in the corpus",
            persist=1, min_rows=1,
        ),
        "is_unrelated": Clause(
            "the KL is beyond that of any related model in the first row", "warning",
            "corpus: references of another training are at 0.42 nats per token; log-probabilities of shifted tokens are at 14",
            persist=1, min_rows=1,
        ),
        "of_the_pairs": Clause(
            "the implicit rewards of both answers are far above zero in the first row", "warning",
            "definition: they are 0 where policy and reference are the same model; 0.3 at most in 156 recorded and public runs, "
            "a foreign reference of the corpus included", persist=1, min_rows=1,
        ),
    }  # fmt: skip

    def find(self, view: View) -> Sequence[Finding]:
        if view.get("reference_is_policy").last == 1.0:
            message = "The reference model is the policy itself: the KL stays zero, and its penalty has no effect."
            return (Finding("", 1.0, 0.0, message, clause="shares_weights"),)
        if view.get("dropout_active").last == 1.0 and "dropout" not in self._noted:
            message = "Dropout is active in the policy: its log-probabilities differ between forward passes."
            return (Finding("", 1.0, 0.0, message, clause="dropout"),)
        if view.index == 0 and (found := _of_the_pairs(view)):
            return found
        kl = view.get("kl_mean")
        if kl.n == 1 and view.index == 0 and kl.first > FIRST[unit_of(view)]:
            unit = unit_of(view)
            length = 1.0 if unit == "token" else mean_length(view) if unit else inf
            if kl.first > (UNRELATED if view.step <= 1 else BY_UPDATES) * length > 0.0:
                message = f"KL is {kl.first:.3g} in the first row: the reference is not related to the policy."
                return (Finding("", kl.first, UNRELATED * length, message, {"kl": kl.first}, clause="is_unrelated"),)
            if view.step > 1:
                return ()  # the updates before this row may have moved the policy
            message = f"KL is {kl.first:.3g} in the first row: the reference is another model, or dropout is active."
            return (Finding("", kl.first, FIRST[unit], message, {"kl": kl.first}, clause="is_another"),)
        zero = kl.n >= 5 and max(abs(kl.high), abs(kl.low), abs(kl.last)) < ZERO and is_measured(view)
        if zero and policy_moves(view) and not _is_empty(view) and not weights_stayed(view):
            message = "KL stays zero although the policy moves: the reference is the policy itself."
            return (Finding("", kl.level, ZERO, message, {"kl": kl.level}, clause="is_the_policy"),)
        return ()


def _of_the_pairs(view: View) -> Sequence[Finding]:
    """Whether both answers of a pair have an implicit reward before anything was learnt."""
    chosen, rejected = view.get("chosen_reward_mean").last, view.get("rejected_reward_mean").last
    if not inf > min(chosen, rejected) > max(APART, abs(chosen - rejected)):
        return ()
    said = f"The implicit rewards are {chosen:.3g} and {rejected:.3g} in the first row"
    message = f"{said}; they are 0 where the reference is the model that training starts from."
    return (Finding("", chosen, APART, message, {"chosen": chosen, "rejected": rejected}, clause="of_the_pairs"),)


def _is_empty(view: View) -> bool:
    """Whether the gradient norm is 0 in every row as well, although the policy moves: then such columns are not filled in."""
    grad = gradient_norm(view)
    return grad.last == 0.0 and grad.same == grad.n
