"""Causes in the reward function: what it returns, and whether it separates better from worse responses."""

from __future__ import annotations

from rldk.judge.incidents.causes.cause import Cause

__all__ = ["REWARD"]

REWARD: tuple[Cause, ...] = (
    Cause(
        "reward_nonfinite", "the reward function returns NaN or infinity",
        {"nonfinite_metric.reward": 9.0, "nonfinite_metric.reward_again": 9.0, "missing_reward": 0.5, "missing_reward.all_missing": 4.0, "missing_reward.most_missing": 4.0},
        "Find the responses whose reward is not finite (a log of 0, a division by 0, a parser that fails), and give them the "
        "lowest reward instead.",
        needs=(
            "nonfinite_metric.reward", "nonfinite_metric.reward_again", "missing_reward.all_missing", "missing_reward.most_missing",
        ),
    ),
    Cause(
        "numerical_failure", "numerical failure",
        {"nonfinite_metric": 6.0, "nonfinite_metric.reward": 1.0,
         "nonfinite_metric.reward_again": 1.0, "nonfinite_metric.never": 0.0, "nonfinite_gradient": 6.0, "loss_explosion": 0.5,
         "exploding_gradient_anomaly": 0.5},
        "{back}, skip steps whose gradients are not finite, and look for a log of 0, a division by a spread of 0, or half "
        "precision that overflows; lower {lr}.",
        needs=("nonfinite_metric", "nonfinite_gradient"),
    ),
    Cause(
        "reward_missing", "responses get no reward",
        {"missing_reward": 8.0, "missing_reward.all_missing": 10.0, "nonfinite_metric.reward": 3.0},
        "Look at the responses without a reward; fix the reward function (a parser, a time limit, a service), or return the "
        "lowest reward instead of nothing.",
        needs=("missing_reward", "nonfinite_metric.reward"),
    ),
    Cause(
        "reward_flipped", "the reward has the wrong sign",
        {"reward_changed.flipped": 12.0},
        "Go back to the checkpoint before the flip, and fix the sign of the reward.", needs=("reward_changed.flipped",),
    ),
    Cause(
        "reward_changed", "the reward or the prompts changed",
        {"reward_changed.worse": 6.0, "reward_changed.undone": 6.0, "reward_changed.not_restored": 6.0,
         "dead_reward.fading": 8.0, "advantage_scale_anomaly": 0.5, "value_divergence": 0.5},
        "Look for what changed when the reward fell: the reward function, its weights, its normalisation, the reward model or its "
        "server, the prompts, the chat template.",
        in_control="Look for what changed when the reward fell: the reward function, its normalisation, the environment or its settings.",
        needs=("reward_changed.worse", "reward_changed.undone", "reward_changed.not_restored", "dead_reward.fading"),
    ),
    Cause(
        "reward_constant", "every response gets the same reward",
        {"dead_reward": 4.0, "dead_reward.fading": 0.0, "dead_reward.full_marks": 0.0, "dead_reward.constant": 6.0,
         "dead_reward.constant_of_late": 6.0, "dead_reward.dead_groups": 2.0, "dead_reward.hardly_any_groups": 1.0,
         "dead_reward.prompts_differ": 0.5, "dead_reward.prompts_decide": 0.5, "sparse_reward": 2.0, "plateau": 0.3,
         "eos_starvation": 0.3, "vanishing_gradient_anomaly": 0.5, "policy_collapse": -2.0,
         "policy_collapse.few_rows": 0.0, "entropy_collapse": -3.0, "entropy_explosion": -3.0, "learning_rate_too_high": -3.0,
         "kl_explosion": -0.5},
        "Score a few responses by hand: can the answer be parsed, can responses end before the length limit, does the reward "
        "separate better from worse responses? Start with prompts that the model solves sometimes.",
        needs=("dead_reward", "sparse_reward"),
        in_control="Watch an episode: can the policy reach anything that is rewarded? Explore more, reward steps on the way, or start "
        "closer to the goal.",
    ),
    Cause(
        "prompts_too_easy", "every response has the full score: there is nothing left to learn",
        {"dead_reward.full_marks": 9.0},
        "Use harder prompts, or a reward that separates good responses from better ones. Check that the reward function can "
        "return less than 1.",
        needs=("dead_reward.full_marks",),
    ),
    Cause(
        "reward_ignores_response", "the reward depends only on the prompt, or groups are too easy or too hard",
        {"dead_reward.dead_groups": 5.0, "dead_reward.hardly_any_groups": 3.0, "dead_reward.no_spread": 0.5,
         "dead_reward.prompts_differ": 8.0, "dead_reward.prompts_decide": 8.0, "sparse_reward": 1.0, "plateau.predictable": 5.0,
         "plateau.drifts": 1.5, "plateau.drifts_far": 1.5,
         "entropy_collapse": -3.0, "learning_rate_too_high": -3.0},
        "Score two different responses to one prompt by hand: they must differ. Drop prompts that are always or never solved.",
        needs=(
            "dead_reward.dead_groups", "dead_reward.hardly_any_groups", "dead_reward.prompts_differ", "dead_reward.prompts_decide",
            "plateau.predictable", "plateau.drifts", "plateau.drifts_far",
        ),
    ),
    Cause(
        "reward_random", "the reward does not depend on the response, or updates do not follow the reward",
        {"plateau.drifts": 4.0, "plateau.drifts_far": 5.0, "plateau.flat": 1.0, "plateau.no_rise": 1.0, "plateau.wanders": 2.5,
         "plateau.wanders_on": 3.0, "plateau.gains_nothing": 3.0, "plateau.part_stuck": 2.5,
         "reward_changed.worse": 3.0, "reward_changed.undone": 3.0, "reward_changed.not_restored": 3.0, "kl_explosion": 0.3,
         "dead_reward": -2.0, "policy_collapse": -1.5, "entropy_explosion": -2.0, "clip_saturation.saturated": -1.5},
        "Check that each reward goes to its own response, and that it separates better from worse responses: score the same "
        "responses twice, and compare a good one with a bad one. Check that the loss is that of the sampled tokens, under the "
        "weights and the template that sampled them.",
        in_control="Check that each reward goes to its own action, that advantages are those of the actions that were taken, and that "
        "observations are normalised; then change {lr}.",
        needs=(
            "plateau.drifts", "plateau.drifts_far", "plateau.flat", "plateau.no_rise", "plateau.wanders", "plateau.wanders_on",
            "plateau.gains_nothing", "plateau.part_stuck", "reward_changed.worse", "reward_changed.undone", "reward_changed.not_restored",
        ),
    ),
    Cause(
        "reward_too_noisy", "the reward is mostly noise",
        {"plateau.drifts": 3.5, "plateau.drifts_far": 4.5, "plateau.flat": 0.5, "plateau.no_rise": 0.5,
         "plateau.wanders": 2.0, "plateau.wanders_on": 2.0, "plateau.gains_nothing": 2.0, "advantage_volatility_anomaly": 0.5,
         "policy_collapse": -1.5, "entropy_explosion": -2.0, "clip_saturation.saturated": -1.5},
        "Raise {batch}, average several scores per response, or use a less noisy reward.",
        needs=(
            "plateau.drifts", "plateau.drifts_far", "plateau.flat", "plateau.no_rise", "plateau.wanders", "plateau.wanders_on",
            "plateau.gains_nothing",
        ),
    ),
)  # fmt: skip
