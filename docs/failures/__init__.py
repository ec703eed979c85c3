"""The failures of the gallery, by what they are about, in the order of the page."""

from __future__ import annotations

from failures import advantages, gradients, kl, length, policy, preferences, reward, sampler, training, value
from failures.failure import Failure

__all__ = ["GROUPS", "Failure"]

GROUPS: dict[str, tuple[Failure, ...]] = {
    "The reward": reward.FAILURES,
    "The KL from the reference": kl.FAILURES,
    "The policy": policy.FAILURES,
    "Sampler and trainer": sampler.FAILURES,
    "Length": length.FAILURES,
    "Gradients": gradients.FAILURES,
    "Advantages": advantages.FAILURES,
    "The value function": value.FAILURES,
    "Preferences": preferences.FAILURES,
    "The run itself": training.FAILURES,
}
