"""A training metric is NaN or infinite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.core.text import few
from rldk.detectors.base import NOTE, Clause, Detector, Finding, View
from rldk.signals.optimizer import ALL_NORMS
from rldk.signals.series import Series

__all__ = ["NonfiniteMetric"]

LOSSES = ("loss", "policy_loss", "value_loss")
WATCHED = (
    *LOSSES, *ALL_NORMS, "kl_mean", "kl_update", "entropy_mean", "reward_mean", "ratio_mean", "advantage_mean", "value_mean",
)  # fmt: skip
CALIBRATION = 8
"""Consecutive gradient norms that a loss scaler may lose while it finds its scale."""
EMPTY_ROWS = 20  # rows without a value of the loss: by then every trainer has made an update
HUGE = 3.5e38
"""Larger than any 32-bit float: a metric beyond it is as broken as an infinite one."""
REWARDS = 5
"""Consecutive non-finite rewards that are a defect: more than the gaps of trainers that score every fourth step."""
GAP = 10
"""Consecutive non-finite rows of other metrics (not of the optimizer) that are no longer a gap."""


class NonfiniteMetric(Detector):
    """A loss, gradient norm, KL, entropy or reward is NaN or infinite.

    What it catches: a value that is not finite, or larger than any 32-bit float, in a metric that training depends on, from
        the first row on. A loss is critical at once, unless the trainer says that it skipped the update; so is a non-finite
        gradient norm beside a loss of exactly 0, which is how some trainers write a NaN loss. A reward is critical when it is
        not finite for the fifth time in a row, or in four of five rows. Gradient norms alone are critical after eight in a
        row, other metrics after ten.
    Why it matters: one NaN that reaches the optimizer spreads to every weight, and nothing after it is training.
    When it misfires: mixed precision with a loss scaler skips steps with an infinite gradient, several in a row at the
        start, which is only a warning. Some trainers write NaN for values they have not measured: other metrics in
        which NaN and numbers alternate are ignored. The spread of a batch of one is NaN by definition and is not watched.
    What to do: stop, go back to an earlier checkpoint, and find the first non-finite value: the reward function, a
        log of 0, a division by a spread of 0, half precision that overflows. Skip steps with non-finite gradients.
    References: Hugging Face's `logging_nan_inf_filter` hides a NaN loss and leaves it in `grad_norm`.
    """

    __slots__ = ("_empty",)
    type: ClassVar[str] = "nonfinite_metric"
    family: ClassVar[str] = "run"
    needs: ClassVar = (WATCHED,)
    reads: ClassVar = ("update_applied",)
    panels: ClassVar = ("losses", "gradients")
    advice: ClassVar[str] = (
        "Go back to an earlier checkpoint, find the first non-finite value (reward function, log of 0, half precision), "
        "and skip steps with non-finite gradients."
    )
    clear: ClassVar[int] = 10
    clauses: ClassVar = {
        "loss": Clause("a loss is not finite", "critical", "definition: its gradient is not finite", persist=1, min_rows=1),
        "reward": Clause("the reward is not finite, row after row", "critical", "definition: the advantage is not finite",
        persist=1, min_rows=1),
        "others": Clause(
            "a metric is not finite for many rows", "critical", "a gap in a log is shorter than ten rows", persist=1, min_rows=1,
        ),
        "never": Clause(
            "the loss is logged in every row and has never had a value", "warning",
            "definition: a loss without a value has no gradient, or the update is not reached", persist=1, min_rows=1,
        ),
        "reward_again": Clause(
            "the reward is not finite in several rows", "warning", "definition: its advantage is not finite either", persist=1,
            min_rows=1,
        ),
        "again": Clause("a metric is not finite in several rows", "warning", "definition", persist=1, min_rows=1),
        "once": Clause("a metric is not finite in one row", NOTE, "trainers skip such a step or response", persist=1, min_rows=1),
    }  # fmt: skip

    _empty: int  # rows in which the loss was logged without a value

    def reset(self) -> None:
        super().reset()
        self._empty = 0

    def find(self, view: View) -> Sequence[Finding]:
        metrics, nulls = view.event.metrics, view.event.nulls
        if nulls and "loss" in nulls and not view.get("loss").n:
            self._empty += 1
            if self._empty >= EMPTY_ROWS:
                message = f"The loss was logged in {self._empty} rows and never had a value: there may be no update at all."
                evidence = {"rows": float(self._empty)}
                return (Finding("", float(self._empty), float(EMPTY_ROWS), message, evidence, clause="never"),)
        if -HUGE < sum(metrics.values()) < HUGE and -HUGE < metrics.get("reward_mean", 0.0) < HUGE:
            return ()  # if the sum is finite, so is each of them, unless two cancel out
        bad = [
            name for name in WATCHED if name in metrics and not abs(metrics[name]) < HUGE and not _is_gap(name, view.get(name))
        ]
        if not bad:
            return ()
        runs = {name: max(view.get(name).nonfinite_run, 1) for name in bad}
        longest = max(runs.values())
        finite = not view.get(bad[0]).nonfinite_run
        what = "larger than any 32-bit float" if finite else f"not finite ({longest} in a row)"
        message = f"{few(bad, 4)} {'is' if len(bad) == 1 else 'are'} {what}."
        if bad == ["reward_mean"]:
            rows = f" in {longest} rows in a row" if longest > 1 else ""
            message = f"The reward is {metrics['reward_mean']:g}{rows}: the reward function returned it."
        evidence = {"metrics": float(len(bad)), "in_a_row": float(longest)}
        clause = self._clause(view, runs)
        if clause == "again" and bad == ["reward_mean"]:
            clause = "reward_again"
        return (Finding("", metrics[bad[0]], 0.0, message, evidence, clause=clause),)

    @staticmethod
    def _clause(view: View, runs: dict[str, int]) -> str:
        """Whether the non-finite value has probably reached the weights."""
        longest = max(runs.values())
        mild = "again" if longest >= 2 else "once"
        if view.event.metrics.get("update_applied") == 0.0 and longest == 1:
            return mild  # the trainer has skipped the update
        losses = any(name in LOSSES for name in runs)
        reward = view.get("reward_mean")
        mostly = reward.nonfinite >= 2 * REWARDS and reward.nonfinite > 4 * reward.n
        if "reward_mean" in runs and (losses or runs["reward_mean"] >= REWARDS or mostly):
            return "reward"
        if losses:
            return "loss"
        norms = [run for name, run in runs.items() if name in ALL_NORMS]
        if norms:
            hidden = view.event.metrics.get("loss") == 0.0 or len(runs) > len(norms)
            lost = max(view.get(name).nonfinite for name in runs if name in ALL_NORMS)
            often = lost > max(3, 0.25 * view.index)
            mild = "again" if longest > 2 or often else "once"  # a loss scaler skips two steps as easily as one
            return "others" if max(norms) >= (2 if hidden else CALIBRATION) else mild
        return "others" if longest >= GAP or len(runs) >= 3 else mild


def _is_gap(name: str, series: Series) -> bool:
    """Whether a metric is measured in some rows only and NaN in the others, with gaps that keep ending."""
    if name in LOSSES or name in ALL_NORMS or name == "reward_mean":
        return False
    return series.nonfinite - series.nonfinite_run > 0.2 * series.n or (series.n < 5 and series.nonfinite_run < 3)
