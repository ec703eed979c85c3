"""A number of the training has become NaN or infinite."""

from __future__ import annotations

from math import isfinite
from typing import ClassVar

from rldk.core.detector import Detector, Finding, View

__all__ = ["NonfiniteMetric"]

WATCHED = (
    "loss", "policy_loss", "value_loss", "grad_norm", "policy_grad_norm", "value_grad_norm", "kl_mean", "kl_update",
    "entropy_mean", "reward_mean", "ratio_mean", "advantage_mean", "value_mean",
)  # fmt: skip


class NonfiniteMetric(Detector):
    """A loss, gradient norm, KL, entropy or reward is NaN or infinite.

    What it catches: a non-finite value in a metric that training is made of. Once in one metric is a warning; twice in a
        row, or in three metrics of one step, is critical.
    Why it matters: one NaN that reaches the optimizer is in every weight after the step, and nothing after it is training.
    When it misfires: mixed precision with a loss scaler skips a step with an infinite gradient now and then, which is a
        warning here and no more. Spreads of a batch of one are NaN by definition and are not watched.
    What to do: stop, go back to a checkpoint from before, and find the first non-finite value: the reward function, a
        log of 0, a division by a spread of 0, half precision that overflows. Skip steps with non-finite gradients.
    References: Hugging Face's `logging_nan_inf_filter` hides a NaN loss and leaves it in `grad_norm`.
    """

    __slots__ = ()
    type: ClassVar[str] = "nonfinite_metric"
    tracker: ClassVar[str] = "run"
    needs: ClassVar = (WATCHED,)
    advice: ClassVar[str] = (
        "Go back to a checkpoint from before, find the first non-finite value (reward function, log of 0, half precision), "
        "and skip steps with non-finite gradients."
    )
    persist: ClassVar[int] = 1
    clear: ClassVar[int] = 3

    def check(self, view: View) -> Finding | None:
        metrics = view.event.metrics
        if isfinite(sum(metrics.values())):  # then each of them is
            return None
        bad = [name for name in WATCHED if name in metrics and metrics[name] - metrics[name] != 0.0]
        if not bad:
            return None
        longest = max(view.get(name).nonfinite_run for name in bad)
        severity = "critical" if longest >= 2 or len(bad) >= 3 else "warning"
        shown = ", ".join(bad[:4]) + (" …" if len(bad) > 4 else "")
        message = f"{shown} {'is' if len(bad) == 1 else 'are'} not finite ({longest} in a row)."
        return Finding(severity, metrics[bad[0]], 0.0, message, {"metrics": float(len(bad)), "in_a_row": float(longest)})
