"""How parts become scores. Every score is in [0, 1], and NaN while there is no evidence; docs/scores.md has the formulas.

All parts have one shape: `within(x, limit)` is 1 up to a limit that a healthy run keeps, and falls as limit / x beyond
it. A score is the geometric mean of its parts, so that one part near 0 cannot be averaged away by the others; parts
without evidence are omitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import nan

__all__ = ["MAIN_SCORES", "PARTS", "clip", "combine", "named", "within"]

MAIN_SCORES = ("overall_health", "training_stability", "convergence_quality")
"""The scores that every surface shows; `in_words` gives their names."""

PARTS: dict[str, tuple[str, ...]] = {
    "kl_health": ("level", "steadiness", "trend"),
    "schedule_health": ("range", "responsiveness", "overshoot", "oscillation", "moving"),
    "gradient_health": ("flow", "balance", "not_exploding", "not_vanishing"),
    "training_stability": ("steadiness", "ratio_trend", "not_exploding"),
    "advantage_health": ("bias", "scale", "normalization", "distribution"),
    "advantage_quality": ("spread", "steadiness", "distribution"),
    "length_bias": ("correlation",),
    "overall_health": ("kl_health", "schedule_health", "gradient_health", "advantage_health", "length_bias", "alarms"),
    "training_stability_overall": ("kl", "gradients", "advantages", "entropy", "alarms"),
    "convergence_quality": ("reward_held", "reward_gained", "advantage_quality", "alarms"),
}
"""The parts of each score, in the order in which they are kept."""


def within(value: float, limit: float) -> float:
    """1 up to the limit, limit / value beyond it; NaN for a NaN."""
    if value > limit:
        return limit / value if limit > 0.0 else 0.0
    return 1.0 if value == value and limit == limit else nan


def clip(value: float) -> float:
    """The value, not below 0 nor above 1; NaN stays."""
    return 0.0 if value < 0.0 else 1.0 if value > 1.0 else value


def combine(parts: Iterable[float]) -> float:
    """Geometric mean of the parts that have evidence; NaN if none has."""
    product, count = 1.0, 0
    for part in parts:
        if part == part:
            product *= part
            count += 1
    if count < 2:
        return product if count else nan
    return float(product ** (1.0 / count))


def named(score: str, parts: Sequence[float]) -> dict[str, float]:
    """The parts of a score by name; NaN for those without evidence."""
    return dict(zip(PARTS[score], parts, strict=True)) if parts else dict.fromkeys(PARTS[score], nan)
