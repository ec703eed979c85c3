"""Failures of advantages."""

from __future__ import annotations

from failures.failure import Failure

__all__ = ["FAILURES"]

FAILURES = (
    Failure(
        "advantage_bias_anomaly", "The mean advantage is far from zero",
        "The mean is a full spread away from zero: nearly everything that was sampled is pushed in the same direction.",
        ("advantages",),
        {
            "advantage_trend_anomaly": "The mean is not there yet, but moves away from zero steadily.",
            "advantage_volatility_anomaly": "The mean jumps to both sides.",
            "advantage_distribution_anomaly": "Not only the mean: all advantages have the same sign.",
        },
        fault="advantage_bias",
    ),
    Failure(
        "advantage_trend_anomaly", "The mean advantage drifts away from zero",
        "Block by block, the mean advantage moves further in the same direction.",
        ("advantages",),
        {
            "advantage_bias_anomaly": "It has arrived: the mean is a full spread away.",
            "value_unexplained": "The reason may be the value function: its explained variance stays at zero.",
        },
    ),
    Failure(
        "advantage_volatility_anomaly", "The mean advantage jumps from batch to batch",
        "Neighbouring rows differ by half of the spread of the advantages or more.",
        ("advantages",),
        {
            "advantage_bias_anomaly": "The mean stays on one side.",
            "batch_too_small": "Each batch holds only a few responses.",
        },
        ("noisy_reward",),
        recorded="ppo-binary--s1--lr_x30",
    ),
    Failure(
        "advantage_scale_anomaly", "The spread of the advantages multiplies",
        "The standard deviation of the advantages is many times what it was at the start, or a small fraction of it.",
        ("advantage_std",),
        {
            "advantage_normalization_anomaly": "The advantages are whitened, so their spread should be 1.",
            "exploding_gradient_anomaly": "The gradient grows, and the advantages keep their scale.",
            "dead_reward": "The spread is gone because all responses score the same.",
        },
        ("reward_spread_falls",),
    ),
    Failure(
        "advantage_normalization_anomaly", "Whitened advantages are no longer white",
        "Mean and spread leave 0 and 1, where arithmetic should keep them.",
        ("advantages", "advantage_std"),
        {
            "advantage_scale_anomaly": "The advantages were never whitened, and their scale changes.",
            "advantage_bias_anomaly": "The advantages were never whitened, and their mean leaves zero.",
        },
    ),
    Failure(
        "advantage_distribution_anomaly", "All advantages have the same sign",
        "The lowest advantage is above zero, or the highest below: the sign no longer separates good samples from bad ones.",
        ("advantages",),
        {
            "advantage_bias_anomaly": "Both signs occur, and the mean is far from zero.",
            "advantage_skewness_anomaly": "Both signs occur, with a few extreme samples on one side.",
        },
        recorded="grpo-gpt2--s1--reward_constant_below_best",
    ),
    Failure(
        "advantage_skewness_anomaly", "A long tail of advantages on one side",
        "The skewness is several times what it was: a few extreme samples make the update.",
        ("advantage_shape",),
        {
            "advantage_kurtosis_anomaly": "The tails are long on both sides.",
            "importance_weights_degenerate": "The weights of the samples are uneven, not their advantages.",
        },
    ),
    Failure(
        "advantage_kurtosis_anomaly", "Outliers among the advantages on both sides",
        "The excess kurtosis is many times what it was, and skewness does not explain it.",
        ("advantage_shape",),
        {
            "advantage_skewness_anomaly": "The outliers are on one side.",
            "advantage_scale_anomaly": "All advantages grow, not only a few.",
        },
    ),
)  # fmt: skip
