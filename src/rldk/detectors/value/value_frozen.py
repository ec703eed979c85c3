"""The value function does not learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, View
from rldk.signals.reward import SCORES
from rldk.signals.value import variance_growth

__all__ = ["ValueFrozen"]

GROWN = 1.3  # times its start that the value loss has where nothing is learnt, since the returns grow
CONSTANT = 1e-3  # explained variance, up or down, of values that are one number for all responses
LEARNT = 0.05  # explained variance of values that follow the returns
LATE = 30  # rows after which a value function has learnt the level of the returns


class ValueFrozen(Detector):
    """The value function does not learn.

    What it catches: a value function without trainable parameters, or whose weights do not change from update to update,
        whatever the reward does; values that have explained none of the returns' variance since the start. Also a value loss
        that is above its start after thirty updates of a language model, and stays there.
    Why it matters: the values do not predict the returns, so the advantages are as noisy as without a value function.
    When it misfires: a value function that was trained before and is frozen on purpose, or was as good at the start as it can be.
    What to do: check that the value function's parameters require gradients and belong to the optimizer, and that its
        coefficient and learning rate are not 0.
    References: none.
    """

    __slots__ = ()
    type: ClassVar[str] = "value_frozen"
    family: ClassVar[str] = "value"
    needs: ClassVar = (("value_trainable_params", "weight_change_value", "value_loss", "explained_variance"),)
    reads: ClassVar = (*SCORES, "kl_mean", "reward_std")
    panels: ClassVar = ("value_loss", "explained_variance", "value")
    advice: ClassVar[str] = (
        "Check that the value function's parameters require gradients and belong to the optimizer, and that its learning "
        "rate is not 0."
    )
    clear: ClassVar[int] = 3
    clauses: ClassVar = {
        "still": Clause(
            "the value function does not change", "warning",
            "definition: no trainable parameters, or a relative change of exactly 0", persist=6, min_rows=3,
        ),
        "constant": Clause(
            "the values have explained none of the returns' variance since the start", "warning",
            "definition: the explained variance is within a thousandth of 0 in every row only if all values are the same; in "
            "sound runs, own and public, at most half of the rows are", persist=20, min_rows=10,
        ),
        "loss_stays": Clause(
            "the value loss of a language model is above its start and does not fall", "warning",
            "corpus: after thirty updates it is below its start in all of 170 sound runs whose reward was not changed, and 1.3 "
            "to 3 times its start in 15 runs whose value function is not trained", persist=20, min_rows=8,
        ),
    }  # fmt: skip

    def find(self, view: View) -> Sequence[Finding]:
        change = view.get("weight_change_value")
        frozen = view.get("value_trainable_params").last == 0.0
        if frozen or (change.n >= 3 and change.stays_within(0.0)):
            return (Finding("", 0.0, 0.0, "The weights of the value function do not change.", clause="still"),)
        explained = view.get("explained_variance")
        if explained.n >= 10 and explained.stays_within(CONSTANT):
            message = f"The explained variance is {explained.last:.2g} in every row: the values are the same for all responses."
            return (Finding("", explained.last, CONSTANT, message, {"explained": explained.last}, clause="constant"),)
        return self._by_loss(view)

    @staticmethod
    def _by_loss(view: View) -> Sequence[Finding]:
        """Whether the value loss has not fallen. Control tasks do not count: their returns may grow a hundredfold."""
        loss = view.get("value_loss")
        if loss.n < view.rows(LATE, 12) or not min(loss.slow, loss.level) > GROWN * loss.start * variance_growth(view) > 0.0:
            return ()
        if view.get("explained_variance").slow > LEARNT or not view.get("kl_mean").n or view.reward.was_changed(view.index):
            return ()
        message = f"The value loss is {loss.slow:.3g} after {loss.n} rows, {loss.start:.3g} at the start, and does not fall."
        evidence = {"value_loss": loss.slow, "value_loss_start": loss.start}
        return (Finding("", loss.slow, GROWN * loss.start, message, evidence, clause="loss_stays"),)
