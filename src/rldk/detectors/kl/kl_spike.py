"""The KL jumps, once to stay or repeatedly."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View
from rldk.signals.channels import CHANNEL_METRICS, harm, works
from rldk.signals.kl import USUAL_SEQUENCE, USUAL_TOKEN, unit_of
from rldk.signals.optimizer import gradient_norm
from rldk.signals.reward import SCORES

__all__ = ["KlSpike"]

FIRST_ROWS = 100
HELD = 30
MEMORY = 1 / 30
TINY_TOKEN, TINY_SEQUENCE = 0.01, 1.0


class KlSpike(Detector):
    """The KL jumps to many times its level, and either stays there or jumps repeatedly.

    What it catches: a level (median of five rows) that jumps to five times its mean over about the last thirty rows and to
        five times its early spread, stays there for five rows, and is not tiny (0.01 nats per token, 1 per response). Also
        single values of ten times the level and above the usual range (0.3 nats per token, 15 per response): four of them
        within fifty rows, where one that comes with a gradient norm of ten times its level counts twice, or a single value
        of thirty times the usual range.
    Why it matters: the k3 estimate grows with the exponential of the log-ratio, so a few tokens that the policy has made
        very unlikely make the loss explode. If the gradient jumps too, that batch overwrites what earlier batches taught.
    When it misfires: a single spike is an outlier of the estimator and occurs in healthy runs (0.93 among 0.03). The KL of
        the first rows grows tenfold within a few rows, so jumps in the first hundred rows do not count.
    What to do: clip gradients, clip or mask the log-ratio of single tokens, use the k1 or k2 estimate in the loss, and
        look at the batch: cut-off or padded responses, a different template, a wrong mask.
    References: Schulman 2020, Approximating KL Divergence; OpenRLHF issue 931; TRL pull request 6550.
    """

    __slots__ = ("_leaps", "_mean", "_spikes", "factor", "leap", "many", "monstrous", "window")
    type: ClassVar[str] = "kl_spike"
    family: ClassVar[str] = "kl_schedule"
    needs: ClassVar = (("kl_mean",),)
    panels: ClassVar = ("kl", "kl_coef", "kl_update")
    reads: ClassVar = (*SCORES, *CHANNEL_METRICS)
    advice: ClassVar[str] = (
        "Clip gradients and the log-ratio of single tokens, and look at that batch: cut-off or padded responses, a wrong mask."
    )
    clear: ClassVar[int] = 10
    clauses: ClassVar = {
        "leap": Clause(
            "the KL jumps to five times its mean and stays there", "warning",
            "a judgement: a KL that has settled does not jump without a cause",
        ),
        "spikes": Clause(
            "single values of the KL are ten times its level, and gradients or another channel follow", "warning",
            "TRL pull request 6550: the k3 estimate explodes with single tokens",
        ),
        "outliers": Clause(
            "single values of the KL are ten times its level", NOTE, "healthy runs have such outliers of the estimate",
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "leap": Setting(5.0, "times its recent mean that the level must jump to", min=1.5),
        "factor": Setting(10.0, "times the level at which a single value is a spike", min=2.0),
        "many": Setting(4, "number of spikes within the window", min=1, max=16),
        "window": Setting(50, "length of the window in rows", min=1),
        "monstrous": Setting(30.0, "times the usual range at which one spike is enough", min=1.0),
    }
    leap: float
    factor: float
    many: float
    window: float
    monstrous: float
    _mean: float
    _leaps: int
    _spikes: list[int]

    def reset(self) -> None:
        super().reset()
        self._mean = 0.0
        self._leaps = 0
        self._spikes = []

    def find(self, view: View) -> Sequence[Finding]:
        kl = view.get("kl_mean")
        level, mean, value = kl.level, self._mean, kl.last
        leap = self.leap
        if level > leap * mean and level > TINY_TOKEN and level > leap * kl.scale and kl.n >= FIRST_ROWS and self._leaps < HELD:
            return self._leapt(view, level, mean)
        self._leaps = 0
        if level == level:
            self._mean = (1.0 - MEMORY) * mean + MEMORY * level  # written so that it cannot overflow
        if not value > USUAL_TOKEN or not self.factor * level < value < inf:
            return ()
        return self._spiked(view, value)

    def _leapt(self, view: View, level: float, mean: float) -> Sequence[Finding]:
        """Whether the level itself has jumped: it counts in the fifth row. Until then the mean is not updated, up to a limit."""
        self._leaps += 1
        if self._leaps < 5 or (level < TINY_SEQUENCE and unit_of(view) != "token"):
            return ()
        message = f"KL jumped from {mean:.3g} to {level:.3g} within a few rows and stays there."
        return (Finding("", level, self.leap * mean, message, {"kl": level, "kl_before": mean}, clause="leap"),)

    def _spiked(self, view: View, value: float) -> Sequence[Finding]:
        """Whether a single value has jumped: it counts together with others, or alone if it is large enough."""
        kl, grad = view.get("kl_mean"), gradient_norm(view)
        usual = USUAL_SEQUENCE if unit_of(view) == "sequence" else USUAL_TOKEN
        normal = max(kl.level, abs(kl.base), kl.scale, 0.4 * kl.roughness)
        limit = self.factor * normal
        if not value > max(limit, usual) or kl.n < FIRST_ROWS // 2:
            return ()
        torn = grad.index == kl.index and grad.last > self.factor * max(grad.level, grad.base) > 0.0
        spikes = self._spikes
        spikes += [kl.n] * (1 + torn)
        del spikes[: -int(self.many)]
        often = len(spikes) >= self.many and kl.n - spikes[0] < self.window
        if not (often or value > self.monstrous * usual):
            return ()
        why = f", the last of several such jumps in {kl.n - spikes[0] + 1} rows" if often else ""
        if torn:
            why += f", with a gradient norm of {grad.last:.3g} (usually {grad.level:.3g})"
        message = f"KL jumped to {value:.3g} from a level of {normal:.3g}{why}."
        clause = "spikes" if (torn and not works(view, besides="kl")) or harm(view, besides="kl") else "outliers"
        evidence = {"kl": value, "level": normal, "spikes": float(len(spikes))}
        return (Finding("", value, limit, message, evidence, clause=clause),)
