"""The KL is negative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.kl import in_numbers, unit_of

__all__ = ["NegativeKl"]

BY_LENGTH = 0.002  # nats per token that rounding and an older policy may subtract from the sum over a long response


class NegativeKl(Detector):
    """The KL from the reference is clearly below zero, row after row.

    What it catches: a median over five rows below -0.05 nats per token, or -1 per response (-0.25 where the log does not
        say which), for eight consecutive rows. Ten times that is critical.
    Why it matters: a KL is never negative. Its k1 estimate can be negative by chance, but not for long: if it stays so, the
        samples do not come from the policy that is measured, or the reference is wrong. The penalty then rewards the policy
        for moving away.
    When it misfires: the k1 estimate of a policy that has hardly moved varies around zero, with much smaller values. A KL
        averaged over samples of an older policy may stay slightly negative.
    What to do: check that the sampler has the current weights; sample with temperature 1 and no top-k, top-p or minimum
        length; check that log-probabilities of policy and reference use the same tokens, mask, precision and adapter, and that
        padding is masked.
    References: TRL pull requests 239 and 352 (a warning below -1 per response); TRL issue 925.
    """

    __slots__ = ("sequence", "token", "unstated", "worse")
    type: ClassVar[str] = "negative_kl"
    family: ClassVar[str] = "kl_schedule"
    needs: ClassVar = (("kl_mean",),)
    panels: ClassVar = ("kl",)
    reads: ClassVar = ("kl_coef", "target_kl", "rollout_length_mean")
    advice: ClassVar[str] = (
        "Check that the sampler has the current weights, sample with temperature 1 and without top-k, top-p or a minimum length, "
        "and check that policy and reference log-probabilities use the same tokens, mask and precision."
    )
    clear: ClassVar[int] = 20
    clauses: ClassVar = {
        "far_below_zero": Clause(
            "the KL is far below zero, ten times the limit or more", "critical",
            "definition: a true KL is never negative; ten times the limit of `below_zero`", persist=5, min_rows=5,
        ),
        "below_zero": Clause(
            "the KL stays below zero", "warning",
            "definition: a true KL is never negative; the lowest level in 79 healthy runs of the tune split is -0.0004 "
            "nats per token", persist=8, min_rows=8,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "token": Setting(0.05, "nats per token below zero", min=0.0),
        "sequence": Setting(1.0, "nats per response below zero", min=0.0),
        "unstated": Setting(0.25, "nats below zero where the unit is not known", min=0.0),
        "worse": Setting(10.0, "times the limit at which it is critical", min=1.0),
    }
    token: float
    sequence: float
    unstated: float
    worse: float

    def find(self, view: View) -> Sequence[Finding]:
        kl = view.get("kl_mean")
        level = kl.level
        if not level < 0.0 or kl.n < 5:
            return ()
        unit = unit_of(view)
        limit = -(self.token if unit else self.unstated)
        if unit == "sequence":
            length = view.get("rollout_length_mean").level
            limit = -max(self.sequence, BY_LENGTH * length if length == length else 0.0)
        if level > min(limit, -kl.noise):  # rows that differ by more may be below zero by chance
            return ()
        clauses = ("below_zero", "far_below_zero") if level < self.worse * limit else ("below_zero",)
        message = f"KL from the reference is {level:.3g} {in_numbers(unit)} and stays below zero; a true KL cannot be negative."
        return [Finding("", level, limit, message, {"kl": level, "kl_start": kl.start}, clause=clause) for clause in clauses]
