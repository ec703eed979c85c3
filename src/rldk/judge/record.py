"""All that is known of a run after an update."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any

from rldk.core.files import strict
from rldk.judge.scores.formulas import MAIN_SCORES, named
from rldk.judge.trackers.advantage_statistics import AdvantageStatisticsMetrics
from rldk.judge.trackers.gradient_norms import GradientNormsMetrics
from rldk.judge.trackers.kl_schedule import KLScheduleMetrics
from rldk.judge.trackers.length_bias import LengthBiasMetrics
from rldk.judge.trackers.tracker import Snapshot

__all__ = ["ComprehensivePPOMetrics"]

TRACKERS = ("kl_schedule", "gradient_norms", "advantage_statistics", "length_bias")
SCORES = tuple(f"{name}_score" for name in MAIN_SCORES)


@dataclass(slots=True)
class ComprehensivePPOMetrics(Snapshot):
    """The metrics of one step, what the trackers know after it, and the scores. Later updates do not change it.

    Attributes:
        kl: this and the metrics beside it are those of this very step, NaN where it did not log them.
        kl_schedule_metrics: what its tracker knows, as the ones below it; `None` where the tracker is switched off.
        overall_health_score: in [0, 1], NaN until there is evidence, as are the other two; `score_parts` shows the parts.
        anomalies: those that this step raised.
    """

    step: int = 0
    kl: float = nan
    kl_coef: float = nan
    entropy: float = nan
    reward_mean: float = nan
    reward_std: float = nan
    kl_schedule_metrics: KLScheduleMetrics | None = None
    gradient_norms_metrics: GradientNormsMetrics | None = None
    advantage_statistics_metrics: AdvantageStatisticsMetrics | None = None
    length_bias_metrics: LengthBiasMetrics | None = None
    overall_health_score: float = nan
    training_stability_score: float = nan
    convergence_quality_score: float = nan
    anomalies: tuple[dict[str, Any], ...] = ()
    _metrics: tuple[tuple[str, float], ...] = ()
    _health: tuple[float, ...] = ()
    _stability: tuple[float, ...] = ()
    _convergence: tuple[float, ...] = ()

    @property
    def metrics(self) -> dict[str, float]:
        """All metrics of this step by their canonical names, those the catalogue does not know included."""
        return dict(self._metrics)

    @property
    def scores(self) -> dict[str, float]:
        """The three overall scores by name."""
        return {name.removesuffix("_score"): getattr(self, name) for name in SCORES}

    @property
    def score_parts(self) -> dict[str, dict[str, float]]:
        """The parts of all scores, by score and name; NaN for those without evidence."""
        parts = {
            "overall_health": named("overall_health", self._health),
            "training_stability_overall": named("training_stability_overall", self._stability),
            "convergence_quality": named("convergence_quality", self._convergence),
        }
        for tracker in TRACKERS:
            if (record := getattr(self, f"{tracker}_metrics")) is not None:
                parts.update(record.score_parts)
        return parts

    def flat(self) -> dict[str, Any]:
        """The step, the scores, and each tracker's values as `kl_schedule_current_kl`: one row of a table."""
        found = {"step": self.step, **{name: strict(getattr(self, name)) for name in SCORES}}
        for tracker in TRACKERS:
            record: Snapshot | None = getattr(self, f"{tracker}_metrics")
            if record is not None:
                found.update((f"{tracker}_{name}", value) for name, value in record.to_dict().items() if name != "step")
        return found

    def to_dict(self) -> dict[str, Any]:
        """The record as strict JSON, each tracker's record and its flat form included; what is not known is `None`."""
        shown = {**Snapshot.to_dict(self), **self.flat()}
        return {**shown, "metrics": strict(self.metrics), "score_parts": strict(self.score_parts)}
