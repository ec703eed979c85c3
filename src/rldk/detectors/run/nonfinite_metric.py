"""A number of the training has become NaN or infinite."""

from __future__ import annotations

from typing import ClassVar

from rldk.detectors.base import Detector, Finding, View
from rldk.signals.series import Series

__all__ = ["NonfiniteMetric"]

NORMS = ("grad_norm", "policy_grad_norm", "value_grad_norm")
LOSSES = ("loss", "policy_loss", "value_loss")
WATCHED = (
    *LOSSES, *NORMS, "kl_mean", "kl_update", "entropy_mean", "reward_mean", "ratio_mean", "advantage_mean", "value_mean",
)  # fmt: skip
CALIBRATION = 8
"""Gradient norms in a row that a loss scaler may lose while it finds its scale."""
HUGE = 3.5e38
"""What no number in 32 bits reaches: a metric beyond it is as broken as an infinite one."""
GAP = 10
"""Rows in a row without a number, of metrics that are not those of the optimiser, that are no longer a gap."""


class NonfiniteMetric(Detector):
    """A loss, gradient norm, KL, entropy or reward is NaN or infinite.

    What it catches: a value that is not finite, or that no 32-bit number holds, in a metric that training is made of. Once
        is a warning; a loss twice in a row, or with two other metrics in one row, is critical, and so is a gradient norm
        beside a loss of exactly 0, which is how trainers write a NaN. Gradient norms alone are critical after eight in a
        row, other metrics after ten.
    Why it matters: one NaN that reaches the optimizer is in every weight after the step, and nothing after it is training.
    When it misfires: mixed precision with a loss scaler skips steps with an infinite gradient, several in a row at the
        start, which is a warning here and no more. Some write NaN where they have not measured: metrics other than losses
        and gradient norms are let be until five numbers were seen, and where such gaps keep passing. Spreads of a batch of
        one are NaN by definition and not watched.
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
        if -HUGE < sum(metrics.values()) < HUGE and -HUGE < metrics.get("reward_mean", 0.0) < HUGE:
            return None  # each of them is, but for two that make up for each other
        bad = [
            name for name in WATCHED if name in metrics and not abs(metrics[name]) < HUGE and not _is_gap(name, view.get(name))
        ]
        if not bad:
            return None
        runs = {name: view.get(name).nonfinite_run for name in bad}
        longest = max(runs.values())
        severity = "critical" if self._is_lost(view, runs) else "warning"
        shown = ", ".join(bad[:4]) + (" …" if len(bad) > 4 else "")
        what = f"not finite ({longest} in a row)" if longest else "beyond any number that training can hold"
        message = f"{shown} {'is' if len(bad) == 1 else 'are'} {what}."
        return Finding(severity, metrics[bad[0]], 0.0, message, {"metrics": float(len(bad)), "in_a_row": float(longest)})

    @staticmethod
    def _is_lost(view: View, runs: dict[str, int]) -> bool:
        """Whether what is not finite has reached the weights, as far as can be told."""
        losses = [run for name, run in runs.items() if name in LOSSES]
        norms = [run for name, run in runs.items() if name in NORMS]
        if losses:
            return max(losses) >= 2 or len(runs) >= 3
        if norms:
            hidden = view.event.metrics.get("loss") == 0.0 or len(runs) > len(norms)
            return max(norms) >= (2 if hidden else CALIBRATION)
        return max(runs.values()) >= GAP


def _is_gap(name: str, series: Series) -> bool:
    """Whether a metric is measured in some rows only and NaN in the others: few numbers yet, or many gaps that have passed."""
    if name in LOSSES or name in NORMS:
        return False
    return series.n < 5 or series.nonfinite - series.nonfinite_run > 0.2 * series.n
