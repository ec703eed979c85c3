"""In what unit a run logs its KL, what it aims at, and what is usual: the same for all rules about KL."""

from __future__ import annotations

from math import nan

from rldk.detectors.base import View

__all__ = ["USUAL_SEQUENCE", "USUAL_TOKEN", "adapts", "coefficient", "in_numbers", "target_of", "unit_of"]

USUAL_TOKEN = 0.3
"""Nats a token up to which healthy runs go: most stay between 0.0001 and 0.3."""
USUAL_SEQUENCE = 15.0
"""Nats a response up to which healthy runs go: adaptive controllers usually aim at 6."""


def target_of(view: View) -> float:
    """The KL that the run aims at: the user's word, else what the log says beside a coefficient; NaN if unknown.

    Without a coefficient a logged `target_kl` is that of the early stop, which is about old and new policy.
    """
    given = view.context.get("kl_target")
    if given is None:
        logged = view.series.get("target_kl")
        if logged is None or "kl_coef" not in view.series:
            return nan
        given = logged.last
    return float(given) if given > 0.0 else nan


def unit_of(view: View) -> str:
    """`token` or `sequence`; empty where the log does not say it and nothing gives it away.

    A target below 1 is one by token, and a run that begins above 1 counts by sequence.
    """
    unit = view.reductions.get("kl_mean", "")
    if unit == "token" or unit == "sequence":
        return unit
    target = target_of(view)
    if target > 0.0:
        return "sequence" if target >= 1.0 else "token"
    return "sequence" if view.get("kl_mean").start > 1.0 else ""


def adapts(view: View) -> bool:
    """Whether the coefficient has ever moved; one that never did is a choice."""
    coef = view.get("kl_coef")
    return coef.n >= 5 and coef.high > coef.low


def coefficient(view: View) -> str:
    """` (now 0.05)` after the words "KL coefficient", where the run logs it."""
    coef = view.get("kl_coef")
    return f" (now {coef.last:.3g})" if coef.n else ""


def in_numbers(unit: str) -> str:
    """The unit in words, for messages."""
    return f"nats a {unit}" if unit else "nats (by token or by sequence is not said)"
