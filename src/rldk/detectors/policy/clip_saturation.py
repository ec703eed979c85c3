"""Most of the update is clipped away."""

from __future__ import annotations

from typing import ClassVar

from rldk.detectors.base import Detector, Finding, Setting, View

__all__ = ["ClipSaturation"]


class ClipSaturation(Detector):
    """Most tokens of an update are clipped: the steps are far larger than PPO trusts.

    What it catches: half of the tokens or more hit the clip range, for long.
    Why it matters: a clipped token has no gradient: the update is made by the few that are left, and the ratio between old
        and new policy has left the region in which PPO's estimate holds.
    When it misfires: off-policy methods with many epochs on one batch clip a fifth to a third as a matter of course.
    What to do: lower the learning rate, take fewer epochs or minibatches per batch, or widen the clip range if it was set
        very tight.
    References: Schulman et al. 2017, Proximal Policy Optimization Algorithms.
    """

    __slots__ = ("share",)
    type: ClassVar[str] = "clip_saturation"
    tracker: ClassVar[str] = "policy"
    needs: ClassVar = (("clip_frac",),)
    reads: ClassVar = ("clip_range", "policy_lr", "lr")
    advice: ClassVar[str] = "Lower the learning rate, take fewer epochs per batch, or widen the clip range if it is very tight."
    persist: ClassVar[int] = 8
    settings: ClassVar = {"share": Setting(0.5, "share of clipped tokens", least=0.0, most=1.0)}
    share: float

    def check(self, view: View) -> Finding | None:
        clip = view.get("clip_frac")
        if not clip.ready or clip.level < self.share:
            return None
        message = f"{clip.level:.0%} of the tokens are clipped."
        return Finding("warning", clip.level, self.share, message, {"clip_frac": clip.level})

    def advice_for(self, view: View, finding: Finding) -> str:
        lr = view.first("policy_lr", "lr")
        return f"{self.advice} The learning rate is {lr.last:.2g} now." if lr.n else self.advice
