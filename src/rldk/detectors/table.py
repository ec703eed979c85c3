"""The table of detectors: every rule of rldk, by family."""

from __future__ import annotations

from rldk.core.anomaly import Anomaly
from rldk.detectors.advantages.advantage_bias_anomaly import AdvantageBias
from rldk.detectors.advantages.advantage_distribution_anomaly import AdvantageDistribution
from rldk.detectors.advantages.advantage_kurtosis_anomaly import AdvantageKurtosis
from rldk.detectors.advantages.advantage_normalization_anomaly import AdvantageNormalization
from rldk.detectors.advantages.advantage_scale_anomaly import AdvantageScale
from rldk.detectors.advantages.advantage_skewness_anomaly import AdvantageSkewness
from rldk.detectors.advantages.advantage_trend_anomaly import AdvantageTrend
from rldk.detectors.advantages.advantage_volatility_anomaly import AdvantageVolatility
from rldk.detectors.base import Detector
from rldk.detectors.gradients.exploding_gradient_anomaly import ExplodingGradient
from rldk.detectors.gradients.gradient_balance_anomaly import GradientBalance
from rldk.detectors.gradients.gradient_flow_anomaly import GradientFlow
from rldk.detectors.gradients.gradient_imbalance_anomaly import GradientImbalance
from rldk.detectors.gradients.gradient_stability_anomaly import GradientStability
from rldk.detectors.gradients.ratio_trend_anomaly import RatioTrend
from rldk.detectors.gradients.vanishing_gradient_anomaly import VanishingGradient
from rldk.detectors.kl.coef_adaptation_anomaly import CoefAdaptationAnomaly
from rldk.detectors.kl.controller_oscillation_anomaly import ControllerOscillationAnomaly
from rldk.detectors.kl.controller_overshoot_anomaly import ControllerOvershootAnomaly
from rldk.detectors.kl.controller_responsiveness_anomaly import ControllerResponsivenessAnomaly
from rldk.detectors.kl.kl_explosion import KlExplosion
from rldk.detectors.kl.kl_penalty_off import KlPenaltyOff
from rldk.detectors.kl.kl_penalty_too_strong import KlPenaltyTooStrong
from rldk.detectors.kl.kl_spike import KlSpike
from rldk.detectors.kl.kl_trend_anomaly import KlTrendAnomaly
from rldk.detectors.kl.kl_volatility_anomaly import KlVolatilityAnomaly
from rldk.detectors.kl.negative_kl import NegativeKl
from rldk.detectors.kl.reference_wrong import ReferenceWrong
from rldk.detectors.kl.target_range_anomaly import TargetRangeAnomaly
from rldk.detectors.length.eos_starvation import EosStarvation
from rldk.detectors.length.length_bias import LengthBias
from rldk.detectors.length.length_collapse import LengthCollapse
from rldk.detectors.length.length_runaway import LengthRunaway
from rldk.detectors.policy.batch_overused import BatchOverused
from rldk.detectors.policy.clip_saturation import ClipSaturation
from rldk.detectors.policy.entropy_collapse import EntropyCollapse
from rldk.detectors.policy.entropy_explosion import EntropyExplosion
from rldk.detectors.policy.expert_imbalance import ExpertImbalance
from rldk.detectors.policy.importance_weights_degenerate import ImportanceWeightsDegenerate
from rldk.detectors.policy.ratio_explosion import RatioExplosion
from rldk.detectors.policy.response_collapse import ResponseCollapse
from rldk.detectors.policy.sampler_mismatch import SamplerMismatch
from rldk.detectors.policy.sampling_restricted import SamplingRestricted
from rldk.detectors.policy.temperature_wrong import TemperatureWrong
from rldk.detectors.policy.throttled_update import ThrottledUpdate
from rldk.detectors.policy.tools_abandoned import ToolsAbandoned
from rldk.detectors.policy.train_inference_mismatch import TrainInferenceMismatch
from rldk.detectors.preference.preference_degenerate import PreferenceDegenerate
from rldk.detectors.preference.preference_unlearnt import PreferenceUnlearnt
from rldk.detectors.reward.dead_reward import DeadReward
from rldk.detectors.reward.held_out_collapse import HeldOutCollapse
from rldk.detectors.reward.missing_reward import MissingReward
from rldk.detectors.reward.plateau import Plateau
from rldk.detectors.reward.policy_collapse import PolicyCollapse
from rldk.detectors.reward.reward_changed import RewardChanged
from rldk.detectors.reward.reward_hacking import RewardHacking
from rldk.detectors.reward.reward_saturation import RewardSaturation
from rldk.detectors.reward.sparse_reward import SparseReward
from rldk.detectors.reward.uninformative_groups import UninformativeGroups
from rldk.detectors.run.batch_too_small import BatchTooSmall
from rldk.detectors.run.broken_episodes import BrokenEpisodes
from rldk.detectors.run.learning_rate_too_high import LearningRateTooHigh
from rldk.detectors.run.learning_rate_too_low import LearningRateTooLow
from rldk.detectors.run.loss_explosion import LossExplosion
from rldk.detectors.run.memory_pressure import MemoryPressure
from rldk.detectors.run.nonfinite_metric import NonfiniteMetric
from rldk.detectors.run.policy_frozen import PolicyFrozen
from rldk.detectors.run.settings_unsound import SettingsUnsound
from rldk.detectors.run.stale_rollouts import StaleRollouts
from rldk.detectors.run.step_regression import StepRegression
from rldk.detectors.run.throughput_drop import ThroughputDrop
from rldk.detectors.run.too_few_prompts import TooFewPrompts
from rldk.detectors.run.vanished_metric import VanishedMetric
from rldk.detectors.run.weights_replaced import WeightsReplaced
from rldk.detectors.value.value_divergence import ValueDivergence
from rldk.detectors.value.value_frozen import ValueFrozen
from rldk.detectors.value.value_unexplained import ValueUnexplained

__all__ = ["BY_TYPE", "DETECTORS", "MACHINE_TYPES", "is_machine"]

DETECTORS: tuple[type[Detector], ...] = (
    # kl
    KlExplosion,
    KlSpike,
    NegativeKl,
    KlTrendAnomaly,
    KlPenaltyOff,
    KlPenaltyTooStrong,
    ReferenceWrong,
    KlVolatilityAnomaly,
    TargetRangeAnomaly,
    ControllerResponsivenessAnomaly,
    ControllerOvershootAnomaly,
    ControllerOscillationAnomaly,
    CoefAdaptationAnomaly,
    # value
    ValueDivergence,
    ValueUnexplained,
    ValueFrozen,
    # reward
    PolicyCollapse,
    RewardChanged,
    DeadReward,
    MissingReward,
    SparseReward,
    HeldOutCollapse,
    RewardHacking,
    RewardSaturation,
    Plateau,
    UninformativeGroups,
    # policy
    EntropyCollapse,
    EntropyExplosion,
    ResponseCollapse,
    ClipSaturation,
    RatioExplosion,
    BatchOverused,
    TemperatureWrong,
    SamplingRestricted,
    TrainInferenceMismatch,
    SamplerMismatch,
    ThrottledUpdate,
    ImportanceWeightsDegenerate,
    ExpertImbalance,
    ToolsAbandoned,
    # length
    LengthRunaway,
    LengthCollapse,
    LengthBias,
    EosStarvation,
    # preference
    PreferenceDegenerate,
    PreferenceUnlearnt,
    # gradients
    ExplodingGradient,
    VanishingGradient,
    GradientImbalance,
    GradientFlow,
    GradientBalance,
    GradientStability,
    RatioTrend,
    # advantages
    AdvantageBias,
    AdvantageScale,
    AdvantageDistribution,
    AdvantageNormalization,
    AdvantageTrend,
    AdvantageVolatility,
    AdvantageSkewness,
    AdvantageKurtosis,
    # run
    LossExplosion,
    LearningRateTooHigh,
    LearningRateTooLow,
    PolicyFrozen,
    WeightsReplaced,
    TooFewPrompts,
    BatchTooSmall,
    SettingsUnsound,
    NonfiniteMetric,
    VanishedMetric,
    BrokenEpisodes,
    StaleRollouts,
    StepRegression,
    ThroughputDrop,
    MemoryPressure,
)

BY_TYPE: dict[str, type[Detector]] = {detector.type: detector for detector in DETECTORS}
MACHINE_TYPES = frozenset(kind.type for kind in DETECTORS if kind.machine)
"""The types of anomalies that are about the machine. A user's own limit on such a metric is not one of them."""


def is_machine(anomaly: Anomaly) -> bool:
    """Whether an anomaly is about the machine: it is listed beside the verdict, and never changes it."""
    return anomaly.type in MACHINE_TYPES
