"""The reward rises on the wrong ground."""

from __future__ import annotations

from typing import ClassVar

from rldk.core.detector import Detector, Finding, Setting, View

__all__ = ["RewardHacking"]


class RewardHacking(Detector):
    """The reward is at its best while independent signs say that the text gets worse.

    What it catches: a reward well above its start, together with signs from channels that do not feed it: held-out
        quality that falls (perplexity doubled, diversity or accuracy down), a large KL from the reference, responses
        that double in length or run to the limit, an entropy that is gone, a spread of rewards that is gone. Held-out
        quality counts twice. It is called evidence, since only a reader of samples can be sure.
    Why it matters: the run looks best just when it is worth least.
    When it misfires: a reward that rises alone is learning and says nothing here. A task that is really solved loses its
        spread of rewards, and a length penalty shortens responses: neither is enough.
    What to do: read samples. Raise the KL penalty, stop at the last checkpoint whose held-out quality held, mend what the
        reward fails to see, or mix in a second reward.
    References: Gao et al. 2023; Skalse et al. 2022, Defining and Characterizing Reward Hacking.
    """

    __slots__ = ("enough", "kl_sequence", "kl_token")
    type: ClassVar[str] = "reward_hacking"
    tracker: ClassVar[str] = "reward"
    needs: ClassVar = (
        ("reward_mean",),
        ("kl_mean", "rollout_length_mean", "entropy_mean", "reward_std", "eval_perplexity", "eval_accuracy", "eval_reward_mean"),
    )
    watches: ClassVar = ("reward_mean", "eval_perplexity", "eval_distinct_2", "eval_accuracy", "eval_reward_mean")
    reads: ClassVar = ("kl_mean", "rollout_length_mean", "entropy_mean", "reward_std", "truncated_frac")
    advice: ClassVar[str] = (
        "Read samples; raise the KL penalty, go back to the checkpoint where held-out quality held, and mend the reward."
    )
    persist: ClassVar[int] = 2
    clear: ClassVar[int] = 10
    settings: ClassVar = {
        "enough": Setting(3, "how much evidence makes a warning; one more, with held-out quality among it, is critical", least=2),
        "kl_token": Setting(0.5, "KL by token that counts as evidence", least=0.0),
        "kl_sequence": Setting(30.0, "KL by sequence that counts as evidence", least=0.0),
    }
    enough: float
    kl_token: float
    kl_sequence: float

    def check(self, view: View) -> Finding | None:
        reward = view.get("reward_mean")
        if reward.n < 15:
            return None
        gain = reward.level - reward.start
        if gain <= 2.0 * max(reward.scale, 0.02 * abs(reward.start)) or reward.level < reward.start + 0.6 * (
            reward.high - reward.start
        ):
            return None
        signs, held_out = self._signs(view)
        weight = len(signs) + held_out
        if weight < self.enough:
            return None
        severity = "critical" if held_out and weight > self.enough else "warning"
        message = f"Reward is up {gain:.3g} to {reward.level:.4g}, but {', '.join(signs)}: evidence of reward hacking."
        return Finding(severity, float(weight), self.enough, message, {"gain": gain, "signs": float(len(signs))})

    def _signs(self, view: View) -> tuple[list[str], int]:
        held = self._held_out(view)
        signs = held[:1]
        kl = view.get("kl_mean")
        limit = self.kl_sequence if view.reductions.get("kl_mean") == "sequence" else self.kl_token
        if kl.ready and kl.level > limit and kl.level > 3.0 * abs(kl.start):
            signs.append(f"KL is {kl.level:.3g}")
        length, cut = view.get("rollout_length_mean"), view.get("truncated_frac")
        if (length.ready and length.level > 2.0 * length.start) or (cut.ready and cut.level > 0.8 and cut.start < 0.4):
            signs.append(f"responses have grown to {length.level:.4g} tokens")
        entropy = view.get("entropy_mean")
        if entropy.ready and entropy.start > 0.05 and entropy.level < 0.15 * entropy.start:
            signs.append(f"entropy fell to {entropy.level:.3g}")
        spread = view.get("reward_std")
        if spread.ready and spread.level < 0.05 * spread.base:
            signs.append("the spread of rewards is gone")
        return signs, len(held[:1])

    @staticmethod
    def _held_out(view: View) -> list[str]:
        """What held-out data says against the reward; needs three measurements and compares with the first."""
        found = []
        perplexity = view.get("eval_perplexity")
        if perplexity.n >= 3 and perplexity.last > 2.0 * perplexity.first:
            found.append(f"held-out perplexity rose from {perplexity.first:.3g} to {perplexity.last:.3g}")
        for name, word in (("eval_distinct_2", "diversity"), ("eval_accuracy", "accuracy"), ("eval_reward_mean", "reward")):
            series = view.get(name)
            if series.n >= 3 and series.last < 0.7 * series.first and series.first > 0:
                found.append(f"held-out {word} fell from {series.first:.3g} to {series.last:.3g}")
        return found
