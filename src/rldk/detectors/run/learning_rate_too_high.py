"""The updates are too large."""

from __future__ import annotations

from math import inf, nan
from typing import ClassVar

from rldk.detectors.base import Detector, Finding, Setting, View
from rldk.detectors.reward.course import reward_has_fallen, signs_of_damage, signs_since_first
from rldk.signals.series import RECENT

__all__ = ["LearningRateTooHigh"]

WATCHED = ("kl_update", "clip_frac", "ratio_std", "kl_mean", "policy_lr", "lr")
BEFORE = ("kl_update", "kl_mean", "grad_norm", "policy_grad_norm")
AFTER = 100


class LearningRateTooHigh(Detector):
    """The policy's steps are far too large from the first row on, or since the learning rate jumped.

    What it catches: among the first twenty rows, three with an update that moved the policy by more than 0.1 nats a token
        (1e-4 to 0.02 is usual), clipped most of the tokens, or spread the ratio by more than 1; or a KL from the reference
        beyond 1 nat a token (100 a sequence) in three of these rows. Also a learning rate that jumps to five times its highest,
        followed by damage within a hundred rows. Of a log with a row for several steps, one such row is enough if entropy or
        spread of rewards are gone since the first row and the reward is below it. It is critical once the reward, the
        entropy or the length is damaged too.
    Why it matters: the damage is done in the first rows, and the run then looks calm: a policy that has collapsed no longer
        moves, its KL is frozen and its entropy 0.
    When it misfires: lone large updates are normal, so three are asked for. Warm-up raises the learning rate step by step
        and never to five times its highest at once.
    What to do: lower the learning rate three to ten times, warm it up, take fewer epochs a batch, and set a target for the
        KL of an update at which its epochs end.
    References: Huang et al. 2022, The 37 Implementation Details of Proximal Policy Optimization.
    """

    __slots__ = (
        "before",
        "clip_limit",
        "far",
        "hot",
        "hot_limit",
        "jump",
        "jump_factor",
        "known",
        "rows",
        "start",
        "update_limit",
    )
    type: ClassVar[str] = "learning_rate_too_high"
    tracker: ClassVar[str] = "run"
    needs: ClassVar = (WATCHED,)
    reads: ClassVar = (
        "entropy_mean", "reward_mean", "truncated_frac", "rollout_length_mean", "reward_std", "grad_norm", "policy_grad_norm",
    )  # fmt: skip
    advice: ClassVar[str] = (
        "Lower the learning rate three to ten times, warm it up, take fewer epochs a batch, and set a target for the update's KL."
    )
    persist: ClassVar[int] = 1
    clear: ClassVar[int] = 10
    settings: ClassVar = {
        "update_limit": Setting(0.1, "KL of an update that is far too large, in nats a token", least=0.0),
        "clip_limit": Setting(0.5, "share of clipped tokens that is far too large", least=0.0, most=1.0),
        "start": Setting(20, "rows that count as the start", least=3),
        "hot_limit": Setting(3, "rows of the start that must be too large", least=1),
        "jump_factor": Setting(5.0, "how many times its highest the learning rate jumps to", least=1.0),
    }
    update_limit: float
    clip_limit: float
    start: float
    hot_limit: float
    jump_factor: float
    rows: int
    hot: int
    far: int
    jump: int
    before: list[float]
    known: list[str]

    def reset(self) -> None:
        super().reset()
        self.rows = self.hot = self.far = 0
        self.jump = -RECENT
        self.before = [nan] * len(BEFORE)
        self.known = []

    def check(self, view: View) -> Finding | None:
        self.rows = rows = self.rows + 1
        if rows <= self.start:
            self._count(view)
        lr = view.get("policy_lr")
        if not lr.n:
            lr = view.get("lr")
        if inf > lr.last > self.jump_factor * lr.high > 0.0 and not 0 < rows - self.jump < RECENT:
            self.jump = rows
            self.before = [view.get(name).level for name in BEFORE]
            self.known = _signs(view)
        if self.jump > 0:
            return self._since_jump(view, lr.last)
        if self.hot >= self.hot_limit or self.far >= self.hot_limit:
            return self._since_start(view, _signs(view))
        if self.hot and view.steps_a_row >= self.hot_limit and (signs := _since_first(view)):
            return self._since_start(view, signs)  # one row of several large updates, and what they did
        return None

    def _count(self, view: View) -> None:
        """See whether this row's update was far beyond what is usual, or has brought the policy far already."""
        now = view.event.metrics
        limits = (("kl_update", self.update_limit), ("clip_frac", self.clip_limit), ("ratio_std", 1.0))
        self.hot += any(limit < now.get(name, nan) < inf for name, limit in limits)
        limit = 1.0 if view.reductions.get("kl_mean") == "token" else 100.0
        self.far += limit < now.get("kl_mean", nan) < inf and view.get("kl_mean").first < 0.1 * limit

    def _since_start(self, view: View, signs: list[str]) -> Finding | None:
        if self.rows > AFTER and not view.get("kl_update").level > self.update_limit:
            return None
        new = len(signs) - (self.hot < self.hot_limit and "KL has exploded" in signs)  # a channel speaks once
        count = max(self.hot, self.far)
        also = f", and {' and '.join(signs)}" if signs else ""
        first = min(self.rows, int(self.start))
        message = f"{count} of the first {first} updates were far too large{also}."
        evidence = {"rows_too_large": float(count), "signs": float(len(signs))}
        severity = "critical" if new and self._bad >= RECENT else "warning"
        return Finding(severity, float(count), self.hot_limit, message, evidence)

    def _since_jump(self, view: View, lr: float) -> Finding | None:
        if self.rows - self.jump > AFTER:
            return None
        signs = [sign for sign in _signs(view) if sign not in self.known]
        for name, before in zip(BEFORE, self.before, strict=True):
            level = view.get(name).level
            if level > 10.0 * before > 0.0:
                signs.append(f"{name} went from {before:.2g} to {level:.2g}")
        if not signs:
            return None
        message = f"The learning rate jumped to {lr:.2g}, and {' and '.join(signs)}."
        severity = "critical" if len(signs) >= 2 else "warning"
        return Finding(severity, lr, self.jump_factor, message, {"lr": lr, "signs": float(len(signs))})

    def advice_for(self, view: View, finding: Finding) -> str:
        lr = view.first("policy_lr", "lr")
        return f"{self.advice} It is {lr.last:.2g} now." if lr.n else self.advice


def _signs(view: View) -> list[str]:
    return [*signs_of_damage(view), *(["the reward has fallen"] if reward_has_fallen(view) else [])]


def _since_first(view: View) -> list[str]:
    """What the first rows have lost already, where the reward is below the first one."""
    reward = view.get("reward_mean")
    return signs_since_first(view) if reward.ready and reward.level < reward.first else []
