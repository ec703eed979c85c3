"""The table of detectors: every rule that rldk has, by family."""

from __future__ import annotations

from rldk.core.detector import Detector
from rldk.detectors.length.eos_starvation import EosStarvation
from rldk.detectors.length.length_collapse import LengthCollapse
from rldk.detectors.length.length_runaway import LengthRunaway
from rldk.detectors.policy.clip_saturation import ClipSaturation
from rldk.detectors.policy.entropy_collapse import EntropyCollapse
from rldk.detectors.policy.entropy_explosion import EntropyExplosion
from rldk.detectors.policy.ratio_explosion import RatioExplosion
from rldk.detectors.policy.train_inference_mismatch import TrainInferenceMismatch
from rldk.detectors.preference.preference_degenerate import PreferenceDegenerate
from rldk.detectors.reward.dead_reward import DeadReward
from rldk.detectors.reward.plateau import Plateau
from rldk.detectors.reward.policy_collapse import PolicyCollapse
from rldk.detectors.reward.reward_hacking import RewardHacking
from rldk.detectors.reward.reward_saturation import RewardSaturation
from rldk.detectors.run.memory_pressure import MemoryPressure
from rldk.detectors.run.nonfinite_metric import NonfiniteMetric
from rldk.detectors.run.step_regression import StepRegression
from rldk.detectors.run.throughput_drop import ThroughputDrop

__all__ = ["BY_TYPE", "DETECTORS"]

DETECTORS: tuple[type[Detector], ...] = (
    # reward
    PolicyCollapse,
    DeadReward,
    RewardHacking,
    RewardSaturation,
    Plateau,
    # policy
    EntropyCollapse,
    EntropyExplosion,
    ClipSaturation,
    RatioExplosion,
    TrainInferenceMismatch,
    # length
    LengthRunaway,
    LengthCollapse,
    EosStarvation,
    # preference
    PreferenceDegenerate,
    # run
    NonfiniteMetric,
    StepRegression,
    ThroughputDrop,
    MemoryPressure,
)

BY_TYPE: dict[str, type[Detector]] = {detector.type: detector for detector in DETECTORS}
