"""The gradients have grown far beyond what is normal for the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.core.text import listed
from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.detectors.gradients.norms import own_norm
from rldk.signals.channels import CHANNEL_METRICS, harm
from rldk.signals.optimizer import ALL_NORMS, RATES, with_rate
from rldk.signals.reward import SCORES
from rldk.signals.series import Series

__all__ = ["ExplodingGradient"]

ABSURD, ENORMOUS = 1e8, 1e6  # norms; in healthy public runs they reach 8 600, and a loss that is not divided by tokens adds zeros
OUT_OF_LINE = 1e4  # times the run's own normal


class ExplodingGradient(Detector):
    """The gradient norm stays many times above the run's own normal.

    What it catches: the median of the last five norms is ten times the run's own normal and above 10, or above 1 (where
        clipping usually begins) while another sign of damage shows. It is critical when it lasts and the reward, the
        entropy or the KL is damaged as well, or when it lasts at a hundred times the normal. A single norm is enough where it
        is beyond a hundred million, or beyond a million and ten thousand times the normal.
    Why it matters: with clipping, a norm of 100 means that the direction of the step is set by a few tokens; without it,
        one such step is enough to ruin the weights.
    When it misfires: single spikes of 10 to 100 times the normal are common in healthy runs, and the median ignores them. A
        run that starts without signal (all rewards equal) has a normal near 0, hence the absolute limits.
    What to do: stop if it lasts, go back to the last good checkpoint, lower the learning rate, clip the gradient norm at 1,
        and look for outliers among rewards and advantages at the onset.
    References: Pascanu et al. 2013, On the difficulty of training recurrent neural networks.
    """

    __slots__ = ("beyond", "clip", "factor", "healthy", "lasting")
    type: ClassVar[str] = "exploding_gradient_anomaly"
    family: ClassVar[str] = "gradient_norms"
    needs: ClassVar = (ALL_NORMS,)
    panels: ClassVar = ("gradients",)
    reads: ClassVar = (*SCORES, *CHANNEL_METRICS, *RATES)
    advice: ClassVar[str] = (
        "Lower the learning rate and clip the gradient norm at 1; look for outliers among rewards and advantages."
    )
    clauses: ClassVar = {
        "absurd": Clause(
            "a gradient norm is beyond a hundred million", "critical",
            "public runs: healthy ones reach 8 600; no sum over tokens makes up for the rest",
        ),
        "enormous": Clause(
            "a gradient norm is beyond a million, and ten thousand times its normal", "warning",
            "as above; healthy runs have single norms of a hundred times their normal",
        ),
        "vast": Clause(
            "the gradient norm stays at a hundred times its normal", "critical",
            "a judgement; the largest in the tune split is 129 times its start, in a sound run whose reward was scaled, "
            "which is recognised", persist=5, min_rows=5,
        ),
        "with_damage": Clause(
            "the gradient norm stays at ten times its normal, and another channel has left its range", "critical",
            "corroboration by an independent channel", persist=5, min_rows=5,
        ),
        "grown": Clause(
            "the gradient norm is ten times its normal, or a few times with other signs of damage", "warning",
            "tune split: 95 % of 97 sound runs stay below 4.4 times their start; in the largest the reward was scaled",
            persist=5, min_rows=5,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "factor": Setting(10.0, "factor over the run's own normal that the norm must reach", min=1.0),
        "healthy": Setting(10.0, "norm below which it fires only with other signs of damage", min=0.0),
        "clip": Setting(1.0, "norm below which it never fires", min=0.0),
        "beyond": Setting(100.0, "factor over the normal that is critical without another sign", min=1.0),
        "lasting": Setting(5, "rows for which it must last to be critical; four times as many without another sign", min=1),
    }
    factor: float
    healthy: float
    clip: float
    beyond: float
    lasting: float

    def find(self, view: View) -> Sequence[Finding]:
        clip = self.clip
        for name in ALL_NORMS:
            norm = view.series.get(name)
            if norm is None:
                continue
            if norm.last > ENORMOUS and norm.index == view.index and (single := _single(name, norm)):
                return single
            if norm.level > clip and norm.level > self.factor * own_norm(norm) and _has_baseline(norm):
                found = self._judge(view, name, norm.level, own_norm(norm))
                if found:
                    return found
        return ()

    def _judge(self, view: View, name: str, level: float, own: float) -> Sequence[Finding]:
        if view.reward.was_changed(view.index):
            return ()  # the scale of the reward itself changed
        signs = harm(view, besides="gradients")
        if level <= self.healthy and not signs:
            return ()
        also = f", while {listed(signs)}" if signs else ""
        message = f"{name} is {level:.3g}, {level / max(own, 1e-12):.3g} times the run's own normal of {own:.3g}{also}."
        limit = max(self.factor * own, self.clip if signs else self.healthy)
        evidence = {"norm": level, "normal": own, "signs": float(len(signs))}
        found = [Finding("", level, limit, message, evidence, clause="grown")]
        if signs and level > self.healthy:
            found.append(Finding("", level, limit, message, evidence, clause="with_damage", persist=self.lasting))
        if level > max(self.beyond * own, self.beyond):
            found.append(Finding("", level, limit, message, evidence, clause="vast", persist=4.0 * self.lasting))
        return found

    def advice_for(self, view: View, finding: Finding) -> str:
        return with_rate(self.advice, view)


def _single(name: str, norm: Series) -> Sequence[Finding]:
    """Whether one norm alone is beyond any sane one."""
    own = own_norm(norm)
    clause = "absurd" if norm.last > ABSURD else "enormous" if _has_baseline(norm) and norm.last > OUT_OF_LINE * own else ""
    if not clause or norm.nonfinite_run:
        return ()
    normal = f"; the run's own normal is {own:.3g}" if _has_baseline(norm) else ""
    limit = ABSURD if clause == "absurd" else ENORMOUS
    return (Finding("", norm.last, limit, f"{name} is {norm.last:.3g}{normal}.", {"norm": norm.last}, True, clause),)


def _has_baseline(norm: Series) -> bool:
    """Whether there is a baseline and the value is finite (`nonfinite_metric` judges the others)."""
    return norm.n >= 10 and not norm.nonfinite_run
