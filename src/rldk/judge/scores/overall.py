"""The three overall scores, from what the trackers and the engine know, and all scores by name."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from rldk.core.anomaly import Anomaly
from rldk.judge.engine import Engine
from rldk.judge.scores.alarms import alarm, alarmed
from rldk.judge.scores.formulas import clip, combine, within
from rldk.judge.trackers.advantage_statistics import AdvantageStatisticsMetrics
from rldk.judge.trackers.all_trackers import Trackers
from rldk.judge.trackers.gradient_norms import GradientNormsMetrics
from rldk.judge.trackers.kl_schedule import KLScheduleMetrics
from rldk.judge.trackers.length_bias import LengthBiasMetrics
from rldk.signals.reward import RewardSignal, score_of
from rldk.signals.series import RECENT, Series

__all__ = ["FOLLOWED", "Scored", "convergence", "health", "named_scores", "stability"]

FOLLOWED = ("reward_mean", "entropy_mean", "kl_mean", "kl_coef")
ENTROPY_SHARE, ENTROPY_FLOOR = 0.5, 0.05  # noise of a healthy entropy, relative to its level, or in nats
NOISE = 2.0  # usual changes of the reward by which its level may be below its best
GAIN = 6.0

Scored = tuple[float, tuple[float, ...]]
"""A score and its parts."""


def health(
    kl: KLScheduleMetrics | None,
    gradients: GradientNormsMetrics | None,
    advantages: AdvantageStatisticsMetrics | None,
    length: LengthBiasMetrics | None,
    engine: Engine,
    factor: float = 1.0,
) -> Scored:
    """Geometric mean of the trackers' health, lowered by the standing anomalies."""
    trackers = (
        kl.kl_health_score if kl else nan,
        kl.schedule_health_score if kl else nan,
        gradient_health(gradients, engine),
        advantages.advantage_health_score if advantages else nan,
        length.length_bias_score if length else nan,
    )
    score = combine(trackers)
    if score != score and _judged(engine):
        score = 1.0
    score = alarmed(score, factor)
    return score, (*trackers, factor if score == score else nan)


def gradient_health(gradients: GradientNormsMetrics | None, engine: Engine) -> float:
    """The health of the gradients; NaN without any, and where the task is solved: nothing is left to learn, so there are none."""
    solved = engine.view.reward.is_solved(score_of(engine.view))
    return gradients.gradient_health_score if gradients is not None and not solved else nan


def _judged(engine: Engine) -> bool:
    """Whether the detectors had anything to judge."""
    return any(series.n >= RECENT for series in engine.series.values())


def stability(
    kl: KLScheduleMetrics | None,
    gradients: GradientNormsMetrics | None,
    advantages: AdvantageStatisticsMetrics | None,
    engine: Engine,
    factor: float = 1.0,
) -> Scored:
    """How steady KL, gradients, advantages and entropy are, lowered by the standing anomalies."""
    entropy = engine.series.get("entropy_mean")
    wandering = nan
    if entropy is not None and entropy.n >= RECENT:
        usual = ENTROPY_SHARE * abs(entropy.level)
        wandering = within(entropy.roughness, usual if usual > ENTROPY_FLOOR else ENTROPY_FLOOR)
    parts = (
        kl._health[1] if kl and kl._health else nan,
        gradients.training_stability if gradients else nan,
        advantages.advantage_scale_stability if advantages else nan,
        wandering,
    )
    score = alarmed(combine(parts), factor)
    return score, (*parts, factor if score == score else nan)


def convergence(advantages: AdvantageStatisticsMetrics | None, engine: Engine, factor: float = 1.0) -> Scored:
    """Whether the reward is at its best, whether it has risen, and whether there is a signal to learn from.

    Without a reward there is no convergence score, unless an anomaly of the reward or the policy shows that it fails.
    """
    score = score_of(engine.view)
    if score.n < 2 * RECENT:
        return (factor, (nan, nan, nan, factor)) if factor < 1.0 else (nan, ())
    parts = (*_reward(engine.view.reward, score), advantages.advantage_quality_score if advantages else nan)
    return alarmed(combine(parts), factor), (*parts, factor)


def _reward(reward: RewardSignal, score: Series) -> tuple[float, float]:
    """How much of its best the reward has kept, and how far it has risen; a reward that was changed counts from there."""
    noise = score.roughness
    lost = reward.lost(score) - NOISE * noise
    span = max(reward.gain, NOISE * noise)
    held = 1.0 if lost <= 0.0 else 1.0 - clip(lost / span) if span > 0.0 else 0.0
    gain = score.level - reward.start
    gained = clip(0.5 + gain / (GAIN * noise)) if noise > 0.0 else 0.5 if gain == 0.0 else 1.0 if gain > 0.0 else 0.0
    return held, gained


def named_scores(trackers: Trackers, engine: Engine, anomalies: Sequence[Anomaly]) -> dict[str, float]:
    """Every score, lowered by these anomalies; scores without evidence are omitted.

    With the standing anomalies these are the scores now; with all anomalies of the run, its scores at its worst.
    """
    kl, gradients, advantages, length = trackers.records()

    def under(name: str, score: float) -> float:
        return alarmed(score, alarm(anomalies, name))

    found = {
        "overall_health": health(kl, gradients, advantages, length, engine, alarm(anomalies, "overall_health"))[0],
        "training_stability": stability(kl, gradients, advantages, engine, alarm(anomalies, "training_stability"))[0],
        "convergence_quality": convergence(advantages, engine, alarm(anomalies, "convergence_quality"))[0],
        "kl_health": under("kl_health", kl.kl_health_score if kl else nan),
        "schedule_health": under("schedule_health", kl.schedule_health_score if kl else nan),
        "gradient_health": under("gradient_health", gradient_health(gradients, engine)),
        "advantage_health": under("advantage_health", advantages.advantage_health_score if advantages else nan),
        "advantage_quality": under("advantage_quality", advantages.advantage_quality_score if advantages else nan),
        "length_bias": under("length_bias", length.length_bias_score if length else nan),
    }
    return {name: score for name, score in found.items() if score == score}
