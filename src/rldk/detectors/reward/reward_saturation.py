"""Nothing is left to gain, and the policy drifts on."""

from __future__ import annotations

from typing import ClassVar

from rldk.core.detector import Detector, Finding, Setting, View

__all__ = ["RewardSaturation"]


class RewardSaturation(Detector):
    """The reward is at its ceiling with no spread left, and the policy still moves away from the reference.

    What it catches: the spread of rewards is below two percent of what it was and the reward is at its best level, for
        long, while the KL goes on growing to more than twice what it was when the ceiling was reached.
    Why it matters: there is nothing left to learn from this reward; each further step is drift, and drift breaks text.
    When it misfires: a solved task is a success and is not reported while the KL stands still.
    What to do: stop here and keep the checkpoint; take harder prompts, or a finer reward; raise the KL penalty if going on.
    References: Gao et al. 2023, Scaling Laws for Reward Model Overoptimization.
    """

    __slots__ = ("drift", "kl_then", "rows", "rows_full", "share")
    type: ClassVar[str] = "reward_saturation"
    tracker: ClassVar[str] = "reward"
    needs: ClassVar = (("reward_mean",), ("reward_std",), ("kl_mean",))
    watches: ClassVar = ("reward_std",)
    advice: ClassVar[str] = "Keep this checkpoint and stop, take harder prompts or a finer reward, or raise the KL penalty."
    settings: ClassVar = {
        "share": Setting(0.02, "share of its first spread below which the rewards count as all alike", least=0.0, most=0.5),
        "rows": Setting(30, "rows for which that must have lasted", least=5),
        "drift": Setting(2.0, "how many times the KL must have grown since", least=1.0),
    }
    share: float
    rows: float
    drift: float
    rows_full: int
    kl_then: float

    def reset(self) -> None:
        super().reset()
        self.rows_full = 0
        self.kl_then = 0.0

    def check(self, view: View) -> Finding | None:
        reward, spread, kl = view.get("reward_mean"), view.get("reward_std"), view.get("kl_mean")
        if not (spread.n >= 20 and kl.ready and spread.level < self.share * spread.base and reward.level > reward.start):
            self.rows_full = 0
            return None
        self.rows_full += 1
        if self.rows_full == 1:
            self.kl_then = kl.level
        if self.rows_full < self.rows or kl.level < self.drift * max(self.kl_then, 1e-3):
            return None
        message = (
            f"All responses have scored alike ({reward.level:.4g}) for {self.rows_full} rows, "
            f"while KL grew from {self.kl_then:.3g} to {kl.level:.3g}."
        )
        return Finding("warning", kl.level, self.drift * self.kl_then, message, {"kl_then": self.kl_then, "kl": kl.level})
