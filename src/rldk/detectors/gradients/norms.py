"""What the rules about gradient norms share."""

from __future__ import annotations

from rldk.core.detector import View
from rldk.core.series import Series

__all__ = ["BASELINE", "NORMS", "NO_SIGNAL", "lacks_signal", "own_norm"]

NORMS = ("grad_norm", "policy_grad_norm")
"""The norm of all gradients, or that of the policy where only this one is logged."""

NO_SIGNAL = ("reward_zero_std_frac", "reward_std")
"""What `lacks_signal` looks at."""

BASELINE = 20
"""Values after which the run's own normal stands."""


def own_norm(norm: Series) -> float:
    """The run's own normal norm; the spread where half of the rows are 0 (logged at the last micro-step)."""
    return norm.base if norm.base > norm.scale else norm.scale


def lacks_signal(view: View) -> bool:
    """Whether the rewards tell no samples apart, so that no gradient can be: another defect, or a task that is solved."""
    alike = view.get("reward_zero_std_frac")
    spread = view.get("reward_std")
    return alike.level > 0.5 or spread.level <= max(0.1 * spread.base, 1e-6)
