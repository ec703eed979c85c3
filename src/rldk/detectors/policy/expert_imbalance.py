"""A mixture of experts uses few of its experts, or other ones in the trainer than in the sampler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View

__all__ = ["ExpertImbalance"]


class ExpertImbalance(Detector):
    """The load of the experts has become uneven, or trainer and sampler route tokens to different experts.

    What it catches: a busiest expert with more than twice its fair share and three times the excess it started with; a
        load-balancing loss that has doubled; routes of the sampler that cannot be replayed for more than 5 % of the tokens.
    Why it matters: experts that get no tokens stop learning, and the busy ones set the time of a step. Where trainer and sampler
        choose different experts, the gradient belongs to another policy: runs without replayed routing collapse.
    When it misfires: data of one subject uses some experts more; the start of the run is taken as its normal. A load-balancing
        loss whose coefficient is changed on purpose changes too.
    What to do: raise the coefficient of the load-balancing loss or freeze the router; replay the sampler's routing in the
        trainer.
    References: Wang et al. 2024, Auxiliary-Loss-Free Load Balancing (MaxVio); Ma et al. 2025, Rollout Routing Replay
        (arXiv 2510.11370): without replay 3 of 3 runs collapsed, with it none.
    """

    __slots__ = ("excess", "fallback", "growth")
    type: ClassVar[str] = "expert_imbalance"
    family: ClassVar[str] = "policy"
    needs: ClassVar = (("expert_violation_max", "aux_loss", "routing_fallback_frac"),)
    panels: ClassVar = ("mismatch", "losses")
    reads: ClassVar = ("mismatch_kl",)
    special: ClassVar[bool] = True
    advice: ClassVar[str] = (
        "Raise the coefficient of the load-balancing loss or freeze the router, and replay the sampler's routing in the trainer."
    )
    clear: ClassVar[int] = 10
    clauses: ClassVar = {
        "uneven": Clause(
            "the busiest expert has more than twice its fair share, and far more than at the start", "warning",
            "definition: an excess of 1 is twice the fair share; three times the start is beyond the noise of a batch",
            persist=20, min_rows=8,
        ),
        "loss_grown": Clause(
            "the load-balancing loss has doubled", "warning",
            "definition: it is lowest where all experts have the same load, and grows in proportion to the imbalance",
            persist=20, min_rows=8,
        ),
        "not_replayed": Clause(
            "the routing of more than 5 % of the tokens is not replayed", "warning",
            "NeMo-RL's documentation: the share should be zero or near zero; without any replay about 10 % of the routes differ "
            "(arXiv 2510.11370), and 5 % is half of that", persist=5, min_rows=3,
        ),
        "routing_differs": Clause(
            "sampler and trainer of a mixture of experts disagree", NOTE,
            "arXiv 2510.11370: 0.0015 nats without and 0.0008 with replayed routing; 0.01 is far above both",
            persist=10, min_rows=5,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "excess": Setting(1.0, "load of the busiest expert over its fair share, minus 1", min=0.0),
        "growth": Setting(3.0, "factor over the start that the excess must reach", min=1.0),
        "fallback": Setting(0.05, "share of tokens whose experts are not replayed", min=0.0, max=1.0),
    }
    excess: float
    growth: float
    fallback: float

    def find(self, view: View) -> Sequence[Finding]:
        busiest, balance, fallback = (view.get(name) for name in ("expert_violation_max", "aux_loss", "routing_fallback_frac"))
        found = []
        if busiest.ready and busiest.level > (limit := max(self.excess, self.growth * busiest.start)):
            now, then = 1.0 + busiest.level, 1.0 + busiest.start
            message = f"The busiest expert has {now:.2g} times its fair share; at the start it had {then:.2g}."
            evidence = {"excess": busiest.level, "start": busiest.start}
            found.append(Finding("", busiest.level, limit, message, evidence, clause="uneven"))
        if balance.ready and 0.0 < 2.0 * balance.start < balance.level:
            message = f"The load-balancing loss is {balance.level:.3g}; it started at {balance.start:.3g}."
            evidence = {"loss": balance.level, "start": balance.start}
            found.append(Finding("", balance.level, 2.0 * balance.start, message, evidence, clause="loss_grown"))
        if fallback.ready and fallback.level > self.fallback:
            message = f"The sampler's routing is not replayed for {fallback.level:.0%} of the tokens."
            found.append(Finding("", fallback.level, self.fallback, message, {"share": fallback.level}, clause="not_replayed"))
        gap = view.get("mismatch_kl")
        if not found and gap.ready and abs(gap.level) > 0.01:
            message = f"Sampler and trainer differ by {abs(gap.level):.2g} nats per token; with experts, routing may cause this."
            found.append(Finding("", abs(gap.level), 0.01, message, {"mismatch_kl": gap.level}, clause="routing_differs"))
        return found
