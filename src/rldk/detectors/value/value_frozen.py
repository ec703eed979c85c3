"""The value function does not learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, View

__all__ = ["ValueFrozen"]


class ValueFrozen(Detector):
    """The weights of the value function do not change.

    What it catches: a value function without trainable parameters, or whose weights do not change from update to update,
        whatever the reward does.
    Why it matters: the values do not predict the returns, so the advantages are as noisy as without a value function.
    When it misfires: a value function that was trained before and is frozen on purpose.
    What to do: check that the value function's parameters require gradients and belong to the optimizer, and that its
        coefficient and learning rate are not 0.
    References: none.
    """

    __slots__ = ()
    type: ClassVar[str] = "value_frozen"
    family: ClassVar[str] = "value"
    needs: ClassVar = (("value_trainable_params", "weight_change_value"),)
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
    }  # fmt: skip

    def find(self, view: View) -> Sequence[Finding]:
        change = view.get("weight_change_value")
        frozen = view.get("value_trainable_params").last == 0.0
        still = change.n >= 3 and change.first == change.last == 0.0 and (not change.ready or change.high == 0.0)
        if not frozen and not still:
            return ()
        return (Finding("", 0.0, 0.0, "The weights of the value function do not change.", clause="still"),)
