"""What else has gone wrong while the KL rose: channels that do not depend on it."""

from __future__ import annotations

from rldk.detectors.base import View

__all__ = ["READS", "harms"]

READS = (
    "reward_mean", "reward_std", "entropy_mean", "grad_norm", "policy_grad_norm", "eval_perplexity", "eval_accuracy",
    "eval_reward_mean",
)  # fmt: skip
"""The metrics that are looked at, where they are there."""


def harms(view: View) -> tuple[list[str], int]:
    """What is worse than it was, in words, and its weight: 2 for what is damage by itself, 1 for what goes with it."""
    strong = [*_reward(view), *_held_out(view)]
    weak = [*_gradients(view), *_entropy(view), *_spread(view)]
    return strong + weak, 2 * len(strong) + len(weak)


def _reward(view: View) -> list[str]:
    """Reward that lost half of all it ever had, beyond its noise."""
    reward = view.get("reward_mean")
    lost = reward.high - reward.level
    if reward.n < 10 or not lost > max(0.5 * (reward.high - reward.low), 3.0 * reward.scale):
        return []
    return [f"reward fell from {reward.high:.3g} to {reward.level:.3g}"]


def _held_out(view: View) -> list[str]:
    perplexity = view.get("eval_perplexity")
    if perplexity.n >= 3 and perplexity.last > 2.0 * perplexity.first > 0.0:
        return [f"held-out perplexity rose from {perplexity.first:.3g} to {perplexity.last:.3g}"]
    for name in ("eval_accuracy", "eval_reward_mean"):
        series = view.get(name)
        if series.n >= 3 and series.first > 0.0 and series.last < 0.7 * series.first:
            return [f"held-out {name.removeprefix('eval_')} fell from {series.first:.3g} to {series.last:.3g}"]
    return []


def _gradients(view: View) -> list[str]:
    grad = view.first("grad_norm", "policy_grad_norm")
    normal = max(grad.start, grad.base)
    if not (grad.ready and grad.level > 5.0 * normal > 0.0):
        return []
    return [f"gradient norm rose from {normal:.3g} to {grad.level:.3g}"]


def _entropy(view: View) -> list[str]:
    entropy = view.get("entropy_mean")
    if not (entropy.ready and entropy.level > max(3.0 * entropy.start, entropy.start + 0.5)):
        return []
    return [f"entropy rose from {entropy.start:.3g} to {entropy.level:.3g}"]


def _spread(view: View) -> list[str]:
    spread = view.get("reward_std")
    if not (spread.ready and spread.level < 0.05 * spread.base):
        return []
    return ["the spread of rewards is gone"]
