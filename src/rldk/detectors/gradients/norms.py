"""What the rules about gradient norms share."""

from __future__ import annotations

from rldk.detectors.base import View
from rldk.signals.reward import SCORES, rounding_of
from rldk.signals.series import Series

__all__ = ["NO_SIGNAL", "lacks_signal", "own_norm"]

NO_SIGNAL = ("reward_zero_std_frac", "reward_std", *SCORES)
"""The metrics that `lacks_signal` reads."""


def own_norm(norm: Series) -> float:
    """The run's own normal norm; the spread if half of the rows are 0 (logged at the last micro-step)."""
    return norm.base if norm.base > norm.scale else norm.scale


def lacks_signal(view: View, part: float) -> bool:
    """Whether rewards differ so much less than before that a norm at this share of its normal is to be expected.

    That is another defect, or a solved task. The share of useful groups, or the spread of rewards, must be down to that
    share now, and to half of its start over about twenty rows: single batches without any spread are common. If most groups
    lack a spread for a long time, a norm that is logged at the last micro-step is 0 in nearly every row.
    """
    alike, spread = view.get("reward_zero_std_frac"), view.get("reward_std")
    useful = 1.0 - alike.base
    if alike.slow > 0.7 or (1.0 - alike.level <= part * useful and 1.0 - alike.slow <= 0.5 * useful):
        return True
    rounding = rounding_of(view)
    return spread.level <= max(part * spread.base, rounding) and spread.slow <= max(0.5 * spread.base, rounding)
