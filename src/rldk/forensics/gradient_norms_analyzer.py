"""Policy and value gradient norms, and their ratio, under the contract's name."""

from __future__ import annotations

from rldk.judge.trackers.gradient_norms import GradientNormsAnalyzer, GradientNormsMetrics

__all__ = ["GradientNormsAnalyzer", "GradientNormsMetrics"]
