"""The policy has left the reference for good."""

from __future__ import annotations

from typing import ClassVar

from rldk.detectors.base import Detector, Finding, Setting, View
from rldk.detectors.kl.harm import READS, harms
from rldk.detectors.kl.units import USUAL_SEQUENCE, USUAL_TOKEN, coefficient, in_numbers, target_of, unit_of
from rldk.detectors.reward.course import reward_thrives
from rldk.signals.lagged_level import QUICK, SLOW, LaggedLevel

__all__ = ["KlExplosion"]

SMALL_TOKEN, SMALL_SEQUENCE = 0.05, 5.0
THRIVING = 5.0  # how much further a policy may go whose reward has risen and is near its best
ABSURD = 10.0  # nats a token that no policy has which was the reference once
MOVED = 0.04  # share of that below which the KL of a run has not yet moved at all


class KlExplosion(Detector):
    """The KL from the reference is far beyond what healthy runs reach, and stays there.

    What it catches: a KL several times its start whose median over five rows is above 0.5 nats a token, or 50 a response
        (0.1 a token of it, for long ones), or five times a known target. At twice that for five rows it is critical, and
        below twice where the damage shows elsewhere for ten: reward or held-out quality down, or two of gradient norm up
        five times, entropy up three times, spread of rewards gone. Below those limits, a warning for a KL above 0.1 nats a
        token, or 10 a response, that is twelve times what it had settled at thirty or a hundred rows before; with one such
        sign, above half of that and seven times. More than ten nats a token are critical from the first rows on: the policy is
        then not compared with what it began as.
    Why it matters: at one nat a token the policy shares little with the model that it should stay close to. What the reward
        model was trained on, and most of what the model could do, lies on the other side.
    When it misfires: single values of 1 to 3 among values of 0.03 are outliers of the k3 estimator and do not count. A
        run without a KL penalty may live at one or two nats a token: while its reward thrives, that is a warning and no more
        until five times as much. Where the log does not say whether it counts by token or by response, signs of damage are
        asked for first.
    What to do: go back to the last good checkpoint, raise the KL coefficient and lower the learning rate; if it began
        within a few steps, clip gradients too.
    References: Ziegler et al. 2019, Fine-Tuning Language Models from Human Preferences; Gao et al. 2023, Scaling Laws for
        Reward Model Overoptimization; Schulman 2020, Approximating KL Divergence.
    """

    __slots__ = (
        "_bound", "_harmed", "_mean", "_rest", "_ruin", "growth", "ruin", "sequence", "settled_factor",
        "target_factor", "token",
    )  # fmt: skip
    type: ClassVar[str] = "kl_explosion"
    tracker: ClassVar[str] = "kl_schedule"
    needs: ClassVar = (("kl_mean",),)
    reads: ClassVar = (*READS, "kl_coef", "target_kl", "rollout_length_mean", "lr", "policy_lr")
    advice: ClassVar[str] = "Go back to the last good checkpoint, raise the KL coefficient and lower the learning rate."
    persist: ClassVar[int] = 5
    clear: ClassVar[int] = 10
    settings: ClassVar = {
        "token": Setting(0.5, "nats a token beyond which it is a warning", least=0.0),
        "sequence": Setting(50.0, "nats a response beyond which it is a warning", least=0.0),
        "target_factor": Setting(5.0, "times a known target beyond which it is a warning", least=1.0),
        "growth": Setting(3.0, "how many times its start it must be", least=1.0),
        "ruin": Setting(2.0, "times the limit at which it is critical without other signs", least=1.0),
        "settled_factor": Setting(12.0, "times the level it had settled at; six tenths of it with a sign of damage", least=2.0),
    }
    token: float
    sequence: float
    target_factor: float
    growth: float
    ruin: float
    settled_factor: float
    _ruin: int
    _harmed: int
    _bound: float
    _mean: float
    _rest: LaggedLevel

    def reset(self) -> None:
        super().reset()
        self._ruin = self._harmed = 0
        self._bound = 0.0
        self._mean = 0.0
        self._rest = LaggedLevel()

    def check(self, view: View) -> Finding | None:
        kl = view.get("kl_mean")
        level, n = kl.level, kl.n
        if n > 1:
            self._mean = 0.9 * self._mean + 0.1 * level  # in this form it cannot overflow
        elif n:
            self._mean = level
        if n % QUICK == 0 or n % SLOW == 0:
            self._rest.read(n, self._mean)
            self._bound = self._least(view)
        if not level > self._bound or n < 5:
            if self._ruin or self._harmed:
                self._ruin = self._harmed = 0
            return None
        unit = unit_of(view)
        if level > ABSURD and unit == "token" and not reward_thrives(view):
            message = f"KL from the reference is {level:.3g} nats a token: policy and reference have nothing in common."
            return Finding("critical", level, ABSURD, message, {"kl": level, "kl_start": kl.first})
        limit = self._limit(view, unit)
        normal = max(min(kl.start, kl.base), 0.0)
        if not level > max(limit, self.growth * normal):
            self._ruin = self._harmed = 0
            return self._against_settled(view, level, unit)
        ruin = self.ruin * (THRIVING if reward_thrives(view) else 1.0)
        self._ruin = self._ruin + 1 if level > ruin * limit else 0
        signs, weight = harms(view)
        if not (unit or weight or level > self.sequence):
            return None
        self._harmed = self._harmed + 1 if weight >= (2 if unit else 3) else 0
        ruined = self._ruin >= self.persist and (unit or level > self.ruin * self.sequence)
        severity = "critical" if ruined or self._harmed >= 2 * self.persist else "warning"
        message = f"KL from the reference is {level:.3g} {in_numbers(unit)}, from {kl.first:.3g} at the start"
        message += f", and {', '.join(signs)}." if signs else "."
        return Finding(severity, level, limit, message, {"kl": level, "kl_start": normal, "signs": float(len(signs))})

    def _least(self, view: View) -> float:
        """The KL below which there is nothing to look at until the next reading."""
        sequence = unit_of(view) == "sequence"
        least = min(USUAL_SEQUENCE, self.sequence) if sequence else min(USUAL_TOKEN, self.token)
        small = SMALL_SEQUENCE if sequence else SMALL_TOKEN
        return min([least, *(max(0.6 * self.settled_factor * settled, small) for _, settled in self._rest.levels())])

    def _against_settled(self, view: View, level: float, unit: str) -> Finding | None:
        """Judge a KL of usual size by the level at which the run had come to rest."""
        small = SMALL_TOKEN if unit == "token" else SMALL_SEQUENCE
        for low, settled in self._rest.levels():
            at_rest = settled <= 2.0 * low and settled >= MOVED * small  # below, because it had not begun
            if at_rest and level > max(0.6 * self.settled_factor * settled, small):
                return self._above_settled(view, level, settled, small)
        return None

    def _above_settled(self, view: View, level: float, settled: float, small: float) -> Finding | None:
        signs, weight = harms(view)
        if not weight and not level > max(self.settled_factor * settled, 2.0 * small):
            return None
        message = f"KL from the reference is {level:.3g}, {level / settled:.3g} times what it had settled at"
        message += f", and {', '.join(signs)}." if signs else "."
        return Finding("warning", level, self.settled_factor * settled, message, {"kl": level, "kl_settled": settled})

    def _limit(self, view: View, unit: str) -> float:
        """Where the warning begins in this run: by its unit, its target, and the length of its responses."""
        limit, usual = self.token, USUAL_TOKEN
        if unit == "sequence":
            length = view.get("rollout_length_mean").level
            limit, usual = self.sequence, USUAL_SEQUENCE
            if 0.1 * length > limit:
                limit = 0.1 * length
        target = target_of(view)
        if target > 0.1 * usual:  # a smaller one was meant for another unit
            return min(limit, max(self.target_factor * target, usual))
        return limit

    def advice_for(self, view: View, finding: Finding) -> str:
        lr = view.first("lr", "policy_lr")
        rate = f" (now {lr.last:.3g})" if lr.n else ""
        return (
            f"Go back to the last good checkpoint, raise the KL coefficient{coefficient(view)} and lower the learning rate{rate}."
        )
