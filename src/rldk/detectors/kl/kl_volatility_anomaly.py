"""The KL swings from row to row."""

from __future__ import annotations

from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.kl import USUAL_SEQUENCE, USUAL_TOKEN, unit_of

__all__ = ["KlVolatilityAnomaly"]


class KlVolatilityAnomaly(Detector):
    """The KL changes from one row to the next by as much as healthy runs reach in all.

    What it catches: a mean step between neighbouring rows above 0.3 nats a token or 15 a response, at least half of the
        KL's own level and five times its early spread, for thirty rows on end.
    Why it matters: a KL that swings like this is not a property of the policy any more but of which tokens were drawn:
        the estimate is carried by a few outliers, and so is the penalty that is made of it.
    When it misfires: single spikes raise the mean step for a dozen rows, hence thirty. Small KLs swing by their own size
        and more in healthy runs, hence the absolute limit, which is that by response where the log does not say the unit.
    What to do: raise the batch size or clip the log-ratio of single tokens; lower the learning rate if the policy itself
        jumps about.
    References: Schulman 2020, Approximating KL Divergence.
    """

    __slots__ = ("grown", "relative", "sequence", "token")
    type: ClassVar[str] = "kl_volatility_anomaly"
    family: ClassVar[str] = "kl_schedule"
    needs: ClassVar = (("kl_mean",),)
    panels: ClassVar = ("kl", "kl_coef", "kl_update")
    reads: ClassVar = ("kl_coef", "target_kl")
    advice: ClassVar[str] = "Raise the batch size, clip the log-ratio of single tokens, or lower the learning rate."
    persist: ClassVar[int] = 30
    clear: ClassVar[int] = 20
    clauses: ClassVar = {
        "swings": Clause(
            "the KL swings from row to row by more than healthy runs reach at all", "warning",
            "a judgement: half of its level and five times its early spread; sound runs of tune swing by up to 4 nats "
            "per token, on a higher level",
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "token": Setting(USUAL_TOKEN, "mean step in nats a token", least=0.0),
        "sequence": Setting(USUAL_SEQUENCE, "mean step in nats a response", least=0.0),
        "relative": Setting(0.5, "mean step as a share of the level", least=0.0),
        "grown": Setting(5.0, "mean step in early spreads", least=0.0),
    }
    token: float
    sequence: float
    relative: float
    grown: float

    def check(self, view: View) -> Finding | None:
        kl = view.get("kl_mean")
        swing = kl.roughness
        if not swing > self.token or swing < self.relative * abs(kl.level) or kl.n < 20:
            return None
        limit = self.token if unit_of(view) == "token" else self.sequence
        if not swing > max(limit, self.grown * kl.scale):
            return None
        message = f"KL changes by {swing:.3g} from row to row, around a level of {kl.level:.3g}."
        return Finding("warning", swing, limit, message, {"swing": swing, "kl": kl.level, "early_spread": kl.scale})
