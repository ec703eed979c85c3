"""The KL swings from row to row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.kl import USUAL_SEQUENCE, USUAL_TOKEN, unit_of
from rldk.signals.series import EARLY

__all__ = ["KlVolatilityAnomaly"]


class KlVolatilityAnomaly(Detector):
    """The KL changes from one row to the next by as much as its whole level in healthy runs.

    What it catches: a mean change between neighbouring rows above 0.3 nats per token or 15 per response, at least half of the
        KL's own level and five times its early spread, for thirty consecutive rows.
    Why it matters: a KL that swings like this depends on the tokens that were drawn more than on the policy: a few outliers
        dominate the estimate, and with it the penalty.
    When it misfires: a single spike raises the mean change for a dozen rows, hence the wait of thirty. Small KLs swing by
        their own size and more in healthy runs, hence the absolute limit (the one per response where the unit is not known).
    What to do: raise the batch size or clip the log-ratio of single tokens; lower the learning rate if the policy itself
        jumps.
    References: Schulman 2020, Approximating KL Divergence.
    """

    __slots__ = ("grown", "relative", "sequence", "token")
    type: ClassVar[str] = "kl_volatility_anomaly"
    family: ClassVar[str] = "kl_schedule"
    needs: ClassVar = (("kl_mean",),)
    panels: ClassVar = ("kl", "kl_coef", "kl_update")
    reads: ClassVar = ("kl_coef", "target_kl")
    advice: ClassVar[str] = "Raise the batch size, clip the log-ratio of single tokens, or lower the learning rate."
    clear: ClassVar[int] = 20
    clauses: ClassVar = {
        "swings": Clause(
            "the KL swings from row to row by more than the level of healthy runs", "warning",
            "a judgement: half of its level and five times its early spread; healthy runs of the tune split swing by up "
            "to 4 nats per token, on a higher level", persist=30, min_rows=8,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "token": Setting(USUAL_TOKEN, "mean change in nats per token", min=0.0),
        "sequence": Setting(USUAL_SEQUENCE, "mean change in nats per response", min=0.0),
        "relative": Setting(0.5, "mean change as a share of the level", min=0.0),
        "grown": Setting(5.0, "mean change in multiples of the early spread", min=0.0),
    }
    token: float
    sequence: float
    relative: float
    grown: float

    def find(self, view: View) -> Sequence[Finding]:
        kl = view.get("kl_mean")
        swing = kl.roughness
        if not swing > self.token or swing < self.relative * abs(kl.level) or kl.n < EARLY:
            return ()
        limit = self.token if unit_of(view) == "token" else self.sequence
        if not swing > max(limit, self.grown * kl.scale):
            return ()
        message = f"KL changes by {swing:.3g} from row to row, around a level of {kl.level:.3g}."
        return (Finding("warning", swing, limit, message, {"swing": swing, "kl": kl.level, "early_spread": kl.scale}),)
