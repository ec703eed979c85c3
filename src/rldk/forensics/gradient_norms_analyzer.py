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

    def update(
        self,
        step: int,
        policy_grad_norm: float | None = None,
        value_grad_norm: float | None = None,
        total_grad_norm: float | None = None,
    ) -> GradientNormsMetrics:
        """Take what was logged at a step; what is `None` or NaN was not."""
        given = {"policy_grad_norm": policy_grad_norm, "value_grad_norm": value_grad_norm, "grad_norm": total_grad_norm}
        return self._judged(super().update(step, policy_grad_norm, value_grad_norm, total_grad_norm), step, given)
