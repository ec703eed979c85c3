"""The table of detectors: every rule that rldk has, by family."""

from __future__ import annotations

from rldk.core.detector import Detector
from rldk.detectors.policy.entropy_explosion import EntropyExplosion
from rldk.detectors.run.nonfinite_metric import NonfiniteMetric

__all__ = ["BY_TYPE", "DETECTORS"]

DETECTORS: tuple[type[Detector], ...] = (
    # policy
    EntropyExplosion,
    # run
    NonfiniteMetric,
)

BY_TYPE: dict[str, type[Detector]] = {detector.type: detector for detector in DETECTORS}
