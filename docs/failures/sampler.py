"""Failures of sampler and trainer."""

from __future__ import annotations

from failures.failure import Failure

__all__ = ["FAILURES"]

FAILURES = (
    Failure(
        "train_inference_mismatch", "Sampler and trainer drift from each other",
        "The same tokens get different probabilities in the inference engine and in the trainer, and increasingly so.",
        ("mismatch", "reward"),
        {
            "sampler_mismatch": "They disagree since the first row: a setting or the precision differs.",
            "stale_rollouts": "The sampler has old weights; staleness is logged.",
            "throttled_update": "The probabilities agree, and only the importance weights shrink the update.",
        },
    ),
    Failure(
        "sampler_mismatch", "Sampler and trainer disagree from the first row",
        "The same tokens get different probabilities in the inference engine and in the trainer, by more than precision "
        "explains.",
        ("mismatch",),
        {
            "train_inference_mismatch": "They agree at first, and drift from each other.",
            "stale_rollouts": "The sampler has old weights; staleness is logged.",
            "negative_kl": "Only the KL is logged, and it is negative.",
        },
        ("first_kl_not_zero",),
    ),
    Failure(
        "throttled_update", "Importance weights shrink the update",
        "The mean weight of trainer over sampler is far below 1, although both agree about single tokens: weights of long "
        "responses are products.",
        ("sampling_ratio_mean", "mismatch"),
        {
            "sampler_mismatch": "The probabilities of single tokens differ as well.",
            "vanishing_gradient_anomaly": "The gradient has gone although the weights are near 1.",
        },
    ),
    Failure(
        "importance_weights_degenerate", "A few samples carry the whole update",
        "The effective sample size falls to a fraction of the batch: the weights between sampler and trainer are very uneven.",
        ("mismatch_ess",),
        {
            "throttled_update": "All weights are small alike.",
            "advantage_kurtosis_anomaly": "The weights are even, and the advantages have the outliers.",
            "stale_rollouts": "The reason may be age: staleness rises first.",
        },
    ),
    Failure(
        "stale_rollouts", "Responses are many updates old",
        "The mean age of the responses, in updates, has grown severalfold: training is faster than sampling, or a sampler hangs.",
        ("staleness_mean",),
        {
            "train_inference_mismatch": "Sampler and trainer differ though the weights are fresh.",
            "throughput_drop": "Everything is slower, and the age stays.",
        },
    ),
)  # fmt: skip
