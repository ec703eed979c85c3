"""The loss jumps orders of magnitude beyond its own scale."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import inf
from typing import ClassVar

from rldk.core.text import listed
from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View
from rldk.signals.channels import CHANNEL_METRICS, LEARNS, harm, works
from rldk.signals.optimizer import RATES, with_rate
from rldk.signals.reward import SCORES
from rldk.signals.value import reward_outgrew_values

__all__ = ["LossExplosion"]

RECUR = 4
MEMORY = 100


class LossExplosion(Detector):
    """The loss jumps orders of magnitude beyond the run's own scale, repeatedly or to stay.

    What it catches: values above 10 and a hundred times the run's own scale: two within a hundred rows are a warning, four
        are critical. Also a level (median of five) above 2 and ten times that scale: a warning, and critical if it stays at a
        hundred times the scale, or with another sign of damage.
    Why it matters: such a loss comes from a few tokens whose ratio or penalty is not bounded; the calm rows in between do not
        undo what they do to the weights.
    When it misfires: the loss of a policy is near 0 and its relative noise is enormous, so growth alone means nothing:
        the limits of 10 (a cross-entropy is below 12 even for a random guess) and 2 are absolute. A single jump is not
        reported. A loss that starts at exactly 0, as in GRPO, is judged by the limit of 10 alone. One that stays high is only
        a note while the reward thrives and nothing is damaged, as that of values which lag behind a growing reward.
    What to do: stop, go back to the checkpoint before the first jump, bound the ratio (clip it above and below, also for
        negative advantages) and the KL term, clip the gradient norm, lower the learning rate.
    References: Ye et al. 2020, Mastering Complex Control in MOBA Games (dual-clip PPO).
    """

    __slots__ = ("factor", "floor", "level_factor", "level_floor", "spikes")
    type: ClassVar[str] = "loss_explosion"
    family: ClassVar[str] = "run"
    needs: ClassVar = (("loss", "policy_loss"),)
    panels: ClassVar = ("losses", "gradients")
    reads: ClassVar = (*SCORES, *CHANNEL_METRICS, "value_loss", *RATES)
    advice: ClassVar[str] = (
        "Go back to the checkpoint before the first jump, bound the ratio on both sides and the KL term, clip the gradient norm, "
        "and lower the learning rate."
    )
    clauses: ClassVar = {
        "leaps_again": Clause(
            "the loss jumped beyond its scale four times in a hundred rows", "critical",
            "a cross-entropy is below 12 even for a random guess; no sound run of the tune split jumps even once",
        ),
        "stays_with_damage": Clause(
            "the loss stays far above its scale, or above it while another channel has left its range", "critical",
            "corroboration by an independent channel, or a hundred times the scale", persist=6, min_rows=3,
        ),
        "leaps": Clause(
            "the loss jumped beyond its scale twice in a hundred rows", "warning",
            "as above; no sound run of the tune split jumps even once",
        ),
        "stays": Clause(
            "the loss stays at ten times its scale", "warning",
            "tune split: the highest level of 83 sound runs is 0.9",
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "factor": Setting(100.0, "factor over the run's own scale that makes a jump", min=1.0),
        "floor": Setting(10.0, "loss below which nothing counts as a jump", min=0.0),
        "level_factor": Setting(10.0, "factor over the run's own scale that the level must reach", min=1.0),
        "level_floor": Setting(2.0, "level below which it never fires", min=0.0),
    }
    factor: float
    floor: float
    level_factor: float
    level_floor: float
    spikes: deque[int]

    def reset(self) -> None:
        super().reset()
        self.spikes = deque(maxlen=RECUR)

    def find(self, view: View) -> Sequence[Finding]:
        loss = view.first("loss", "policy_loss")
        size, level = abs(loss.last), abs(loss.level)
        spikes = self.spikes
        if (size <= self.floor and level <= self.level_floor and not spikes) or loss.n < 10:
            return ()
        own = max(abs(loss.base), loss.scale)
        if max(self.floor, self.factor * own) < size < inf and loss.index == view.index:
            spikes.append(loss.n)
        while spikes and loss.n - spikes[0] >= MEMORY:
            spikes.popleft()
        limit = max(self.level_floor if own > 0.0 else self.floor, self.level_factor * own)
        if level > limit:
            return self._shifted(view, level, own, limit)
        if len(spikes) < 2:
            return ()
        limit = max(self.floor, self.factor * own)
        rows = loss.n - spikes[0] + 1
        message = f"The loss jumped above {limit:.3g} {len(spikes)} times in {rows} rows; its own scale is {own:.3g}."
        evidence = {"loss": loss.last, "scale": own, "leaps": float(len(spikes))}
        clause = "leaps_again" if len(spikes) >= RECUR else "leaps"
        return (Finding("", loss.last, limit, message, evidence, clause=clause),)

    def _shifted(self, view: View, level: float, own: float, limit: float) -> Sequence[Finding]:
        signs = harm(view)
        worse = bool(signs) or level > max(self.floor, self.factor * own)
        leaps = len(self.spikes) >= RECUR
        also = f", while {listed(signs)}" if signs else ""
        message = f"The loss stays near {level:.3g}; its own scale is {own:.3g}{also}."
        evidence = {"loss": level, "scale": own, "leaps": float(len(self.spikes))}
        if (leaps or worse) and view.get("value_loss").level > level and reward_outgrew_values(view):
            message += " It is the value loss: the values lag behind the reward."
            return (Finding(NOTE, level, limit, message, evidence, clause="stays"),)
        calm = works(view) or (view.reward.trend > LEARNS and not signs)
        found = [Finding(NOTE if calm else "", level, limit, message, evidence, clause="stays")]
        if worse:
            found.append(Finding("", level, limit, message, evidence, clause="stays_with_damage"))
        if leaps:
            found.append(Finding("", level, limit, message, evidence, clause="leaps_again"))
        return found

    def advice_for(self, view: View, finding: Finding) -> str:
        return with_rate(self.advice, view)
