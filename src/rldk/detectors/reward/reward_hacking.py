"""The reward rises on the wrong ground."""

from __future__ import annotations

from math import inf, nan
from typing import ClassVar

from rldk.detectors.base import Detector, Finding, Setting, View
from rldk.signals.series import Series

__all__ = ["RewardHacking"]

HELD_OUT = {"eval_accuracy": "accuracy", "eval_reward_mean": "reward", "eval_distinct_2": "diversity"}
SINCE = ("reward_mean", "kl_mean", "rollout_length_mean", "entropy_mean", "reward_std")
TINY_TOKEN, TINY_SEQUENCE = 0.01, 1.0
FALLEN, CLEARLY, FAR = (0.25, 3.0), (0.15, 8.0), (0.25, 5.0)  # share of its best that was lost, and times its noise
GONE = 0.05  # share of its start below which the spread of rewards is gone


class RewardHacking(Detector):
    """The reward is at its best while independent signs say that the text gets worse.

    What it catches: a reward well above its start, together with signs from channels that do not feed it: held-out
        quality that falls (perplexity doubled; diversity, accuracy or reward down by a quarter of its best, or by a seventh
        if that is far beyond its noise), a large KL from the reference, responses that double in length or run to the limit,
        an entropy that is gone, a spread of rewards that is gone. Held-out quality counts twice; where it has fallen from
        its best while the reward went on rising, a fall by a quarter counts thrice beside another sign, and changes since
        that moment count too: a KL that doubled, length up by half, entropy or spread down by half.
        Without held-out data a spread that is gone must be among the signs: models that learn to reason drift, write longer
        and lose entropy as well. It is called evidence, since only a reader of samples can be sure.
    Why it matters: the run looks best just when it is worth least.
    When it misfires: a reward that rises alone is learning and says nothing here. A task that is really solved loses its
        spread of rewards, and a length penalty shortens responses: neither is enough. Training that overfits to its
        prompts looks much the same, and the advice is the same.
    What to do: read samples. Raise the KL penalty, stop at the last checkpoint whose held-out quality held, mend what the
        reward fails to see, or mix in a second reward.
    References: Gao et al. 2023; Skalse et al. 2022, Defining and Characterizing Reward Hacking.
    """

    __slots__ = ("_deep", "_fallen", "_then", "enough", "kl_sequence", "kl_token")
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
    _then: list[float]
    _fallen: list[str]
    _deep: bool

    def reset(self) -> None:
        super().reset()
        self._then = [nan] * len(SINCE)
        self._fallen = []
        self._deep = False

    def check(self, view: View) -> Finding | None:
        reward, now = view.get("reward_mean"), view.event.metrics
        if "eval_perplexity" in now or "eval_accuracy" in now or "eval_reward_mean" in now or "eval_distinct_2" in now:
            self._fallen, self._deep = self._held_out(view)
            if any(view.get(name).high_index == view.index for name in HELD_OUT):
                self._then = [view.get(metric).level for metric in SINCE]  # its best so far: remember where all else stood
        level, start = reward.level, reward.start
        gain = level - start
        if not gain > reward.scale or level < start + 0.6 * (reward.high - start) or reward.n < view.rows(15):
            return None
        noise = max(reward.scale, 0.02 * abs(start))
        if not gain > noise:
            return None
        held_out = self._fallen
        spread = view.get("reward_std")
        if not held_out and not (gain > 2.0 * noise and spread.level < GONE * spread.base):
            return None
        signs = self._signs(view, bool(held_out))
        weight = len(signs) + (2 if held_out else 0)
        if signs and self._deep and level - self._then[0] > min(noise, 2.0 * reward.roughness):
            weight += 1
        if weight < self.enough:
            return None
        severity = "critical" if held_out and weight > self.enough else "warning"
        told = ", ".join(held_out[:1] + signs)
        message = f"Reward is up {gain:.3g} to {reward.level:.4g}, but {told}: evidence of reward hacking."
        return Finding(severity, float(weight), self.enough, message, {"gain": gain, "signs": float(len(signs))})

    def _signs(self, view: View, held_out: bool) -> list[str]:
        """What has changed, since the start, or since held-out quality was at its best."""
        signs = []
        reward, kl, length, entropy, spread = self._then if held_out else (nan,) * len(SINCE)
        if not view.get("reward_mean").level > reward:
            kl = length = entropy = spread = nan
        now, by_sequence = view.get("kl_mean"), view.reductions.get("kl_mean") == "sequence"
        limit, tiny = (self.kl_sequence, TINY_SEQUENCE) if by_sequence else (self.kl_token, TINY_TOKEN)
        if (now.level > limit and now.level > 3.0 * abs(now.start) and now.ready) or now.level > max(2.0 * kl, tiny):
            signs.append(f"KL is {now.level:.3g}")
        now, cut = view.get("rollout_length_mean"), view.get("truncated_frac")
        if now.level > 2.0 * now.start or (cut.level > 0.8 and cut.start < 0.4) or now.level > 1.5 * length:
            signs.append(f"responses have grown to {now.level:.4g} tokens")
        now = view.get("entropy_mean")
        if now.level < (0.15 * now.start if now.start > 0.05 else -inf) or now.level < 0.5 * entropy:
            signs.append(f"entropy fell to {now.level:.3g}")
        now = view.get("reward_std")
        if now.level < GONE * now.base:
            signs.append("the spread of rewards is gone")
        elif now.level < 0.5 * spread:
            signs.append("the spread of rewards has halved")
        return signs

    @staticmethod
    def _held_out(view: View) -> tuple[list[str], bool]:
        """What held-out data says against the reward, and whether it has fallen far."""
        found, deep = [], False
        perplexity = view.get("eval_perplexity")
        if perplexity.n >= 3 and perplexity.previous > 2.0 * perplexity.first:
            found.append(f"held-out perplexity rose from {perplexity.first:.3g} to {perplexity.previous:.3g}")
        for name, word in HELD_OUT.items():
            series = view.get(name)
            if not series.n:
                continue
            if _has_fallen(series, *FALLEN) or _has_fallen(series, *CLEARLY):
                found.append(f"held-out {word} fell from {series.high:.3g} to {series.previous:.3g}")
                deep |= _has_fallen(series, *FAR)
            elif series.n >= 3 and series.first > 0.0 and series.previous < 0.7 * series.first:
                found.append(f"held-out {word} fell from {series.first:.3g} to {series.previous:.3g}")
        return found, deep


def _has_fallen(series: Series, share: float, noises: float) -> bool:
    """Whether a held-out measure has lost that share of its best, or of all that it had gained, and so many times its noise."""
    size = max(abs(series.high), series.high - series.first)
    return series.n >= 8 and series.high - series.level > max(share * size, noises * series.roughness)
