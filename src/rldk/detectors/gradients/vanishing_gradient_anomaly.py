"""The gradients have vanished."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.detectors.gradients.norms import NO_SIGNAL, lacks_signal
from rldk.signals.optimizer import NORMS, gradient_norm
from rldk.signals.series import EARLY

__all__ = ["VanishingGradient"]


class VanishingGradient(Detector):
    """The gradient norm has fallen to almost zero while the rewards still differ.

    What it catches: thirty norms in a row below a hundredth of the run's own normal; or, from the first row on, norms of
        exactly 0 with a KL that does not move, although the rewards have a spread.
    Why it matters: steps are taken, but nothing is learnt; the compute is wasted.
    When it misfires: a norm of exactly 0 in half of the rows is normal (it is logged at the last micro-step) and so is a
        norm that is small from the start; one ordinary norm among the thirty therefore silences it. If the rewards
        have lost their spread there is nothing to learn from; that is `dead_reward` or `reward_saturation`.
    What to do: check whether the policy's entropy is near 0 or the clip fraction near 1 (no token has a gradient then),
        whether the learning rate or the loss scale is 0, and whether parameters are frozen or not synchronised.
    References: Yu et al. 2025, DAPO (groups of equal rewards give no gradient).
    """

    __slots__ = ("share",)
    type: ClassVar[str] = "vanishing_gradient_anomaly"
    family: ClassVar[str] = "gradient_norms"
    needs: ClassVar = (NORMS,)
    panels: ClassVar = ("gradients",)
    reads: ClassVar = (*NO_SIGNAL, "kl_mean", "entropy_mean")
    advice: ClassVar[str] = (
        "Look for an entropy near 0, a clip fraction near 1, a learning rate of 0, or frozen or unsynchronised parameters."
    )
    clear: ClassVar[int] = 3
    clauses: ClassVar = {
        "gone": Clause(
            "the gradient norm is below a hundredth of its normal although there is a signal to learn from", "warning",
            "a judgement: a hundredth; a fall in the spread of rewards is taken into account", persist=30, min_rows=8,
        ),
    }  # fmt: skip
    settings: ClassVar = {"share": Setting(0.01, "share of the run's own normal that counts as zero", min=0.0, max=1.0)}
    share: float

    def find(self, view: View) -> Sequence[Finding]:
        norm = gradient_norm(view)
        limit = self.share * norm.base
        if not norm.last <= limit:
            return ()
        if limit == 0.0 and not self._frozen(view):
            return ()
        if norm.n < EARLY or lacks_signal(view, 5.0 * self.share):
            return ()
        message = f"The gradient norm is {norm.last:.3g}; the run's own normal is {norm.base:.3g}."
        return (Finding("warning", norm.last, limit, message, {"norm": norm.last, "normal": norm.base}),)

    def _frozen(self, view: View) -> bool:
        """Whether the gradient was 0 and nothing moved since the first row, although the rewards differ."""
        norm, kl = gradient_norm(view), view.get("kl_mean")
        return norm.scale == 0.0 and kl.ready and kl.stays_within(1e-6) and view.get("reward_std").level > 0.0

    def advice_for(self, view: View, finding: Finding) -> str:
        entropy = view.get("entropy_mean")
        return f"{self.advice} The entropy is {entropy.last:.2g} now." if entropy.n else self.advice
