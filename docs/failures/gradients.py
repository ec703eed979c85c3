"""Failures of gradients."""

from __future__ import annotations

from failures.failure import Failure

__all__ = ["FAILURES"]

FAILURES = (
    Failure(
        "exploding_gradient_anomaly", "The gradient norm is far above its normal",
        "The gradient norm climbs to many times the level of the run and stays there.",
        ("gradients", "losses"),
        {
            "gradient_stability_anomaly": "Single rows spike, and the level stays.",
            "loss_explosion": "The loss leaves its scale, with or without the gradients.",
            "gradient_imbalance_anomaly": "Only the gradient of the value function, or only that of the policy, grows.",
        },
        fault="exploding_gradients",
    ),
    Failure(
        "vanishing_gradient_anomaly", "The gradient norm falls to almost zero",
        "Rewards still differ between responses, but the gradient has gone: the update does not reach the weights.",
        ("gradients", "reward_spread"),
        {
            "dead_reward": "The spread of the reward is zero: there is nothing to learn from.",
            "learning_rate_too_low": "The gradient is in its range, and the learning rate is not.",
            "policy_frozen": "The weights do not change, whatever the gradient is.",
        },
        ("gradient_norm_zero", "reward_spread_falls"), fault="vanishing_gradients",
    ),
    Failure(
        "gradient_flow_anomaly", "The gradient norm leaves the usual range",
        "A norm that was between 0.1 and 10 is now several times beyond one of these bounds, and stays there.",
        ("gradients",),
        {
            "exploding_gradient_anomaly": "It is more than ten times its normal.",
            "vanishing_gradient_anomaly": "It is less than a hundredth of its normal.",
            "gradient_stability_anomaly": "Only single rows leave the range.",
        },
        ("gradient_norm_zero",),
    ),
    Failure(
        "gradient_stability_anomaly", "Every few rows the gradient norm spikes",
        "A fifth of the rows stand far above the rest, and the rows between are ordinary.",
        ("gradients",),
        {
            "exploding_gradient_anomaly": "The level itself is high, and not only single rows.",
            "loss_explosion": "The loss spikes in the same rows, by orders of magnitude.",
        },
        ("gradient_norm_zero",),
        recorded="rloo-dense--s2--reference_shared",
    ),
    Failure(
        "gradient_imbalance_anomaly", "One gradient is a hundred times the other",
        "The gradients of policy and value function drift apart by orders of magnitude.",
        ("gradient_ratio", "gradients"),
        {
            "gradient_balance_anomaly": "The ratio jumps, and the two stay within a factor of a hundred.",
            "ratio_trend_anomaly": "The ratio moves slowly and steadily.",
            "value_divergence": "The value loss runs away too.",
        },
        fault="gradient_imbalance",
    ),
    Failure(
        "gradient_balance_anomaly", "The ratio of the gradients jumps",
        "The ratio of policy to value gradient jumps to many times what it was, and stays there.",
        ("gradient_ratio", "gradients"),
        {
            "gradient_imbalance_anomaly": "One of the two is a hundred times the other.",
            "ratio_trend_anomaly": "There is no jump, but a steady drift.",
        },
    ),
    Failure(
        "ratio_trend_anomaly", "The ratio of the gradients drifts",
        "The ratio of policy to value gradient moves in one direction for a hundred rows, by a factor of ten in all.",
        ("gradient_ratio", "gradients"),
        {
            "gradient_balance_anomaly": "It moves at once, within a few rows.",
            "gradient_imbalance_anomaly": "Where it leads: a factor of a hundred.",
        },
    ),
)  # fmt: skip
