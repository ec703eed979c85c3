"""The order and the words of verdicts everywhere, their colours in a terminal, and the names of scores."""

from __future__ import annotations

from collections.abc import Mapping

from rldk.core.verdicts import VERDICTS, ranking
from rldk.judge.scores.formulas import MAIN_SCORES

__all__ = ["MAIN_SCORES", "SHORT_SCORES", "STYLES", "VERDICTS", "at_worst", "counts_in_words", "ranking", "verdict_words"]

STYLES = {"critical": "bold red", "warning": "yellow", "healthy": "green", "no_data": "dim"}
"""The style of a verdict or a severity in a terminal; a page has the class of the same name, and `Palette` the colours."""

SHORT_SCORES = {
    "overall_health": "health", "training_stability": "stability", "convergence_quality": "convergence", "kl_health": "KL",
    "schedule_health": "KL schedule", "gradient_health": "gradients", "advantage_health": "advantages",
    "advantage_quality": "signal", "length_bias": "length bias",
}  # fmt: skip
"""What the scores are called where there is little room."""


def verdict_words(verdict: str) -> str:
    """A verdict as people say it: `no data`."""
    return verdict.replace("_", " ")


def counts_in_words(counts: Mapping[str, int], between: str = " · ") -> str:
    """How many runs have each verdict, the worst first: `2 critical · 1 no data`."""
    return between.join(f"{counts[verdict]:,} {verdict_words(verdict)}" for verdict in VERDICTS if counts.get(verdict))


def at_worst(score: float, worst: float | None) -> str:
    """`at worst 0.31`, where a score was visibly lower than it is now; else empty."""
    return f"at worst {worst:.2f}" if worst is not None and worst < score - 0.005 else ""
