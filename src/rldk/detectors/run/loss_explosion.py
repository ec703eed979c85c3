"""The loss leaps orders of magnitude beyond its own scale."""

from __future__ import annotations

from collections import deque
from math import inf
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.channels import CHANNEL_METRICS, harm
from rldk.signals.reward import SCORES

__all__ = ["LossExplosion"]

RECUR = 4
MEMORY = 100


class LossExplosion(Detector):
    """The loss leaps orders of magnitude beyond the run's own scale, again and again, or stays there.

    What it catches: values above 10 and a hundred times the run's own scale: two within a hundred rows are a warning, four
        are critical. And a level (median of five) above 2 and ten times that scale: a warning, and critical where it lasts
        at a hundred times the scale, or with another sign of damage.
    Why it matters: such a loss is made by a few tokens whose ratio or penalty has no bound; what they do to the weights is
        not undone by the calm rows between.
    When it misfires: the loss of a policy is near 0 and its relative noise is enormous, so that growth alone says nothing:
        the limits of 10 (a cross-entropy is below 12 even for a guess at random) and 2 are absolute. One lone leap is no
        alarm. A loss that begins at exactly 0, as that of GRPO does, is judged by the absolute limits alone.
    What to do: stop, go back to the checkpoint before the first leap, bound the ratio (clip it above and below, also for
        negative advantages) and the KL term, clip the gradient norm, lower the learning rate.
    References: Ye et al. 2020, Mastering Complex Control in MOBA Games (dual-clip PPO).
    """

    __slots__ = ("factor", "floor", "level_factor", "level_floor", "spikes")
    type: ClassVar[str] = "loss_explosion"
    family: ClassVar[str] = "run"
    needs: ClassVar = (("loss", "policy_loss"),)
    panels: ClassVar = ("losses", "gradients")
    reads: ClassVar = (*SCORES, *CHANNEL_METRICS, "policy_lr", "lr")
    advice: ClassVar[str] = (
        "Go back to the checkpoint before the first leap, bound the ratio on both sides and the KL term, clip the gradient norm, "
        "and lower the learning rate."
    )
    persist: ClassVar[int] = 1
    clauses: ClassVar = {
        "leaps_again": Clause(
            "the loss leapt beyond its scale four times in a hundred rows", "critical",
            "a cross-entropy is below 12 even for a guess at random; no sound run of tune leaps once",
        ),
        "stays_with_damage": Clause(
            "the loss stays far beyond its scale, or beyond it while another channel left its range", "critical",
            "corroboration by an independent channel, or a hundred times the scale",
        ),
        "leaps": Clause(
            "the loss leapt beyond its scale twice in a hundred rows", "warning",
            "as above; no sound run of tune leaps once",
        ),
        "stays": Clause(
            "the loss stays at ten times its scale", "warning",
            "tune split: the highest level of 83 sound runs is 0.9",
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "factor": Setting(100.0, "how many times the run's own scale a leap is", least=1.0),
        "floor": Setting(10.0, "loss up to which nothing is a leap", least=0.0),
        "level_factor": Setting(10.0, "how many times the run's own scale the level must be", least=1.0),
        "level_floor": Setting(2.0, "level up to which nothing is said", least=0.0),
    }
    factor: float
    floor: float
    level_factor: float
    level_floor: float
    spikes: deque[int]

    def reset(self) -> None:
        super().reset()
        self.spikes = deque(maxlen=RECUR)

    def check(self, view: View) -> Finding | None:
        loss = view.first("loss", "policy_loss")
        size, level = abs(loss.last), abs(loss.level)
        spikes = self.spikes
        if (size <= self.floor and level <= self.level_floor and not spikes) or loss.n < 10:
            return None
        own = max(abs(loss.base), loss.scale)
        if max(self.floor, self.factor * own) < size < inf and loss.index == view.index:
            spikes.append(loss.n)
        while spikes and loss.n - spikes[0] >= MEMORY:
            spikes.popleft()
        limit = max(self.level_floor, self.level_factor * own)
        if level > limit:
            return self._shifted(view, level, own, limit)
        if len(spikes) < 2:
            return None
        limit = max(self.floor, self.factor * own)
        rows = loss.n - spikes[0] + 1
        message = f"The loss leapt above {limit:.3g} {len(spikes)} times in {rows} rows; its own scale is {own:.3g}."
        evidence = {"loss": loss.last, "scale": own, "leaps": float(len(spikes))}
        clause = "leaps_again" if len(spikes) >= RECUR else "leaps"
        return Finding("", loss.last, limit, message, evidence, clause=clause)

    def _shifted(self, view: View, level: float, own: float, limit: float) -> Finding:
        signs = harm(view)
        vast = level > max(self.floor, self.factor * own)
        lasts = (vast or signs) and self._bad >= 5
        clause = "leaps_again" if len(self.spikes) >= RECUR else "stays_with_damage" if lasts else "stays"
        also = f", while {' and '.join(signs)}" if signs else ""
        message = f"The loss stays near {level:.3g}; its own scale is {own:.3g}{also}."
        evidence = {"loss": level, "scale": own, "leaps": float(len(self.spikes))}
        return Finding("", level, limit, message, evidence, clause=clause)

    def advice_for(self, view: View, finding: Finding) -> str:
        lr = view.first("policy_lr", "lr")
        return f"{self.advice} The learning rate is {lr.last:.2g} now." if lr.n else self.advice
