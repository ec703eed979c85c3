"""The policy has become noise."""

from __future__ import annotations

from typing import ClassVar

from rldk.detectors.base import Detector, Finding, Setting, View
from rldk.detectors.reward.course import reward_has_fallen

__all__ = ["EntropyExplosion"]


class EntropyExplosion(Detector):
    """The policy's entropy has risen far above where it started: it writes noise.

    What it catches: the entropy by token is several times its start and above what text has. Good language models write
        with 0.1 to 2 nats a token; 4 and more is near to drawing words at random (the uniform distribution over a
        vocabulary of 50 000 has 10.8).
    Why it matters: a policy that has come apart does not come back, since random text earns no reward to learn from.
    When it misfires: a run that explores may double or triple a small entropy and be well; it is therefore asked to
        exceed an absolute rise as well, and is critical only beyond what text has, or while the reward falls with it.
    What to do: stop, go back to the last good checkpoint, lower the learning rate or the entropy bonus, and clip the
        gradients; look at the samples around the onset.
    References: Cui et al. 2025, The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models.
    """

    __slots__ = ("factor", "rise", "text_limit")
    type: ClassVar[str] = "entropy_explosion"
    tracker: ClassVar[str] = "policy"
    needs: ClassVar = (("entropy_mean",),)
    reads: ClassVar = ("reward_mean",)
    advice: ClassVar[str] = (
        "Go back to the last good checkpoint, lower the learning rate or the entropy bonus, and clip gradients."
    )
    settings: ClassVar = {
        "factor": Setting(4.0, "how many times its start the entropy must be", least=1.0),
        "rise": Setting(1.0, "by how many nats it must have risen", least=0.0),
        "text_limit": Setting(4.0, "nats a token beyond which it is noise whatever else happens", least=0.0),
    }
    factor: float
    rise: float
    text_limit: float

    def check(self, view: View) -> Finding | None:
        entropy = view.get("entropy_mean")
        if not entropy.ready:
            return None
        normal = min(entropy.start, entropy.base)
        limit = max(self.factor * normal, normal + self.rise)
        if entropy.level < limit:
            return None
        noise = entropy.level > self.text_limit
        severity = "critical" if noise or reward_has_fallen(view) else "warning"
        message = f"Entropy is {entropy.level:.3g} nats a token, {entropy.level / max(normal, 1e-12):.3g} times its start."
        return Finding(severity, entropy.level, limit, message, {"entropy_start": normal, "entropy": entropy.level})
