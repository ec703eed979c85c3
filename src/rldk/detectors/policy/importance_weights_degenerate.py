"""A few responses carry all of the importance weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View

__all__ = ["ImportanceWeightsDegenerate"]


class ImportanceWeightsDegenerate(Detector):
    """The importance weights between sampler and trainer are so uneven that few samples count.

    What it catches: an effective sample size below 0.3 of the batch, a chi-squared divergence per token above 1, or a spread of
        the weights above 1, that lasts.
    Why it matters: the batch costs its full price, but the gradient is that of a few samples with large weights: it is noisy, and
        where weights are cut off it is biased too.
    When it misfires: sequence-level weights of very long responses are uneven by nature; only their effective sample size is
        judged.
    What to do: sync the sampler more often, cut off or mask large weights, use weights per token, and use the same precision on
        both sides.
    References: verl's guide to rollout correction (effective sample size < 0.3, standard deviation > 1, chi2_token > 1).
    """

    __slots__ = ("chi2", "ess", "std")
    type: ClassVar[str] = "importance_weights_degenerate"
    family: ClassVar[str] = "policy"
    needs: ClassVar = (("mismatch_ess", "mismatch_chi2", "sampling_ratio_std"),)
    panels: ClassVar = ("mismatch",)
    special: ClassVar[bool] = True
    advice: ClassVar[str] = (
        "Sync the sampler more often, cut off or mask large importance weights, use weights per token, and one precision on both "
        "sides."
    )
    clear: ClassVar[int] = 10
    clauses: ClassVar = {
        "few_count": Clause(
            "the effective sample size is below 0.3 of the batch", "warning",
            "verl's guide to rollout correction; at 0.3 seven of ten samples are wasted", persist=10, min_rows=5,
        ),
        "uneven": Clause(
            "the importance weights are as uneven as if half of the batch had none", "warning",
            "verl's guide: chi-squared per token above 1, or a standard deviation above 1; the effective sample size is "
            "1 / (1 + chi-squared)", persist=10, min_rows=5,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "ess": Setting(0.3, "effective sample size, as a share of the batch", min=0.0, max=1.0),
        "chi2": Setting(1.0, "chi-squared divergence per token", min=0.0),
        "std": Setting(1.0, "standard deviation of the weights", min=0.0),
    }
    ess: float
    chi2: float
    std: float

    def find(self, view: View) -> Sequence[Finding]:
        size, chi2, std = view.get("mismatch_ess"), view.get("mismatch_chi2"), view.get("sampling_ratio_std")
        if size.ready and 0.0 <= size.level < self.ess:
            message = f"The importance weights leave an effective sample size of {size.level:.0%} of the batch."
            return (Finding("", size.level, self.ess, message, {"ess": size.level}, clause="few_count"),)
        if chi2.ready and chi2.level > self.chi2:
            message = f"The chi-squared divergence of trainer from sampler is {chi2.level:.3g} per token."
            return (Finding("", chi2.level, self.chi2, message, {"chi2": chi2.level}, clause="uneven"),)
        if std.ready and std.level > self.std:
            message = f"The importance weights have a standard deviation of {std.level:.3g}."
            return (Finding("", std.level, self.std, message, {"std": std.level}, clause="uneven"),)
        return ()
