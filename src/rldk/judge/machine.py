"""Findings about the machine: they are listed beside the verdict and never change it."""

from __future__ import annotations

from rldk.core.anomaly import Anomaly
from rldk.detectors.table import DETECTORS

__all__ = ["MACHINE_TYPES", "is_machine"]

MACHINE_TYPES = frozenset(kind.type for kind in DETECTORS if kind.machine)
"""The types of anomalies that are about the machine. A user's own limit on such a metric is not one of them."""


def is_machine(anomaly: Anomaly) -> bool:
    """Whether an anomaly is about the machine and not about the training."""
    return anomaly.type in MACHINE_TYPES
