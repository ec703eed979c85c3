"""Policy and value gradient norms, and their ratio, with the anomalies of that family."""

from __future__ import annotations

from typing import ClassVar

from rldk.forensics.standalone import StandaloneTracker
from rldk.judge.trackers import gradient_norms
from rldk.judge.trackers.gradient_norms import GradientNormsMetrics

__all__ = ["GradientNormsAnalyzer", "GradientNormsMetrics"]


class GradientNormsAnalyzer(StandaloneTracker, gradient_norms.GradientNormsAnalyzer):
    """Follows the gradient norms, and reports what is wrong with them. `window_size`: values in the rolling statistics."""

    family: ClassVar[str] = "gradient_norms"

    def _take(self, step: int, policy: float, value: float, total: float) -> None:
        super()._take(step, policy, value, total)
        self._judge(step, {"policy_grad_norm": policy, "value_grad_norm": value, "grad_norm": total})
