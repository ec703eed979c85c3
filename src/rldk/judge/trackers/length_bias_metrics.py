"""What is known of length and reward after an update."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

from rldk.judge.scores.formulas import named
from rldk.judge.trackers.snapshot import Snapshot, quick

__all__ = ["LengthBiasMetrics", "make_length_metrics"]


@dataclass(frozen=True, slots=True)
class LengthBiasMetrics(Snapshot):
    """Whether longer responses are rewarded more. What was not logged is NaN.

    Attributes:
        sample_count: responses in the window of samples.
        rank_correlation: Spearman's correlation of length and reward, `linear_correlation` Pearson's.
        correlation_trend: change of the rank correlation from one update to the next, with its t value.
        detected: whether the rank correlation rests on enough samples and is at or above `threshold`.
        length_bias_score: 1 up to the threshold, and falling to 0 for a reward that is length alone.
    """

    step: int = 0
    sample_count: int = 0
    rank_correlation: float = nan
    linear_correlation: float = nan
    correlation_trend: float = nan
    correlation_trend_t: float = nan
    mean_response_length: float = nan
    threshold: float = nan
    detected: bool = False
    length_bias_score: float = nan

    @property
    def score_parts(self) -> dict[str, dict[str, float]]:
        """The one part of the score, by name."""
        return {"length_bias": named("length_bias", (self.length_bias_score,))}


make_length_metrics = quick(LengthBiasMetrics)
