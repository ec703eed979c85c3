"""What an optimizer logs: the learning rate, and the norm of the gradients before clipping."""

from __future__ import annotations

from rldk.signals.series import Series
from rldk.signals.view import View

__all__ = ["ALL_NORMS", "NORMS", "RATES", "VALUE_RATES", "gradient_norm", "learning_rate", "rate_in_brackets", "with_rate"]

RATES = ("policy_lr", "lr")
VALUE_RATES = ("value_lr", "lr")
NORMS = ("grad_norm", "policy_grad_norm")
"""The norm of all gradients, or that of the policy if only that is logged."""
ALL_NORMS = (*NORMS, "value_grad_norm")


def learning_rate(view: View) -> Series:
    """The learning rate of the policy."""
    return view.first(*RATES)


def gradient_norm(view: View) -> Series:
    """The norm of all gradients, or that of the policy."""
    return view.first(*NORMS)


def rate_in_brackets(rate: Series) -> str:
    """` (now 1e-05)` after the words "learning rate", where the run logs one above 0."""
    return f" (now {rate.last:.3g})" if rate.n and rate.last > 0.0 else ""


def with_rate(advice: str, view: View) -> str:
    """The advice, and the current learning rate where the run logs one above 0."""
    rate = learning_rate(view).last
    return f"{advice} The learning rate is {rate:.2g} now." if rate > 0.0 else advice
