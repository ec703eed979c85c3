"""The KL jumps, again and again."""

from __future__ import annotations

from math import inf
from typing import ClassVar

from rldk.core.detector import Detector, Finding, Setting, View
from rldk.detectors.kl.units import USUAL_SEQUENCE, USUAL_TOKEN, unit_of

__all__ = ["KlSpike"]


class KlSpike(Detector):
    """The KL jumps to many times its level: in row after row, with the gradient, or beyond all measure.

    What it catches: values ten times the level of the run and above what is usual (0.3 nats a token, 15 a response). One
        alone is passed over. A warning comes with the fourth within fifty rows, where one that comes with a gradient norm of
        ten times its level counts twice, and with a single one of thirty times what is usual.
    Why it matters: the k3 estimate grows with the exponential of the log-ratio, so a few tokens that the policy has all
        but forbidden make the loss explode; with the gradient along, that batch has overwritten what others had taught.
    When it misfires: a lone spike is an outlier of the estimator, and healthy runs have them (0.93 among 0.03).
    What to do: clip gradients, clip or mask the log-ratio of single tokens, use the k1 or k2 estimate in the loss, and
        look at the batch: cut-off or padded responses, another template, a wrong mask.
    References: Schulman 2020, Approximating KL Divergence; OpenRLHF issue 931; TRL pull request 6550.
    """

    __slots__ = ("_spikes", "factor", "many", "monstrous", "window")
    type: ClassVar[str] = "kl_spike"
    tracker: ClassVar[str] = "kl_schedule"
    needs: ClassVar = (("kl_mean",),)
    reads: ClassVar = ("grad_norm", "policy_grad_norm", "target_kl", "kl_coef")
    advice: ClassVar[str] = (
        "Clip gradients and the log-ratio of single tokens, and look at that batch: cut-off or padded responses, a wrong mask."
    )
    persist: ClassVar[int] = 1
    settings: ClassVar = {
        "factor": Setting(10.0, "times the level that make a spike", least=2.0),
        "many": Setting(4, "how many spikes within the window", least=1, most=16),
        "window": Setting(50, "rows of the window", least=1),
        "monstrous": Setting(30.0, "times what is usual at which one is enough", least=1.0),
    }
    factor: float
    many: float
    window: float
    monstrous: float
    _spikes: list[int]

    def reset(self) -> None:
        super().reset()
        self._spikes = []

    def check(self, view: View) -> Finding | None:
        kl = view.get("kl_mean")
        value = kl.last
        if not value > USUAL_TOKEN or kl.n < 20:
            return None
        normal = max(kl.level, abs(kl.base), kl.scale)
        limit = self.factor * normal
        if not limit < value < inf:
            return None
        usual = USUAL_SEQUENCE if unit_of(view) == "sequence" else USUAL_TOKEN
        if value < usual:
            return None
        grad = view.first("grad_norm", "policy_grad_norm")
        torn = grad.index == kl.index and grad.last > self.factor * max(grad.level, grad.base) > 0.0
        spikes = self._spikes
        spikes += [kl.n] * (1 + torn)
        del spikes[: -int(self.many)]
        often = len(spikes) >= self.many and kl.n - spikes[0] < self.window
        if not (often or value > self.monstrous * usual):
            return None
        why = f", the last of several such jumps in {kl.n - spikes[0] + 1} rows" if often else ""
        if torn:
            why += f", with a gradient norm of {grad.last:.3g} (usually {grad.level:.3g})"
        message = f"KL jumped to {value:.3g} from a level of {normal:.3g}{why}."
        return Finding("warning", value, limit, message, {"kl": value, "level": normal, "spikes": float(len(spikes))})
