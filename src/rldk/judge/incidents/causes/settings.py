"""Causes that a setting or the first rows show directly: learning rate, KL penalty, precision, batch, weights."""

from __future__ import annotations

from rldk.judge.incidents.causes.cause import Cause

__all__ = ["SETTINGS"]

SETTINGS: tuple[Cause, ...] = (
    Cause(
        "kl_penalty_negative", "the KL penalty rewards leaving the reference",
        {"kl_penalty_off.negative": 20.0, "kl_penalty_off.pays": 20.0},
        "Make {kl_coef} positive: 0.01 to 0.1.", needs=("kl_penalty_off.negative", "kl_penalty_off.pays"),
    ),
    Cause(
        "temperature_wrong", "the sampling temperature is far from 1",
        {"temperature_wrong": 16.0},
        "Set {temperature} to 1, or between 0.7 and 1.2.", needs=("temperature_wrong",),
    ),
    Cause(
        "sampling_restricted", "responses are not sampled from the policy that is trained",
        {"sampling_restricted": 13.0},
        "Set `top_p` and the repetition penalty to 1, take `top_k` off, and sample at {temperature} 1.",
        needs=("sampling_restricted",),
    ),
    Cause(
        "responses_not_sampled", "all responses to a prompt are the same",
        {"response_collapse.no_variety": 14.0},
        "Turn sampling on: set {temperature} to 1, and take `top_k` and `top_p` off. If the model has only one answer, start from "
        "an earlier checkpoint.", needs=("response_collapse.no_variety",),
    ),
    Cause(
        "learning_rate_too_high", "the learning rate is too high",
        {
            "learning_rate_too_high": 12.0, "learning_rate_too_high.large_updates": 2.5,
            "learning_rate_too_high.large_updates_with_damage": 3.0, "learning_rate_too_high.large_updates_for_nothing": 3.0,
            "loss_explosion": 2.0, "exploding_gradient_anomaly": 1.5, "clip_saturation": 1.0,
            "ratio_explosion": 1.0, "entropy_explosion": 2.0,
            "policy_collapse": 0.7, "policy_collapse.few_rows_with_damage": 1.0, "kl_spike": 0.5, "gradient_stability_anomaly": 0.5,
            "length_runaway": 0.3, "entropy_collapse": 1.0, "kl_explosion": 0.5, "preference_unlearnt.displaced": 1.0,
            "response_collapse": 0.7,
        },
        "{back} and lower {lr} three- to tenfold; keep {grad_clip} at 1 or less, and lower {epochs} per batch.",
        needs=(
            "learning_rate_too_high", "loss_explosion", "exploding_gradient_anomaly", "ratio_explosion", "clip_saturation.saturated",
            "entropy_explosion", "policy_collapse", "entropy_collapse", "preference_unlearnt.displaced",
        ),
    ),
    Cause(
        "learning_rate_too_low", "the learning rate is too low",
        {"learning_rate_too_low": 12.0, "plateau.frozen": 3.0, "plateau.still": 2.5, "policy_frozen.loss_still": 3.0,
         "policy_frozen": 1.0},
        "Raise {lr}, and check the number of steps that its schedule was made for.",
        needs=("learning_rate_too_low", "plateau.frozen", "plateau.still", "policy_frozen.loss_still"),
    ),
    Cause(
        "kl_penalty_too_strong", "the KL penalty is too strong",
        {"kl_penalty_too_strong": 12.0, "plateau.still": 0.5, "target_range_anomaly.below": 1.0},
        "Lower {kl_coef} to 0.01 to 0.1.", needs=("kl_penalty_too_strong", "target_range_anomaly.below"),
    ),
    Cause(
        "reference_wrong", "the reference is the policy itself",
        {"reference_wrong": 9.0, "policy_frozen.kl_still": 1.0},
        "Load the reference as a separate model, from the weights that training starts from.",
        needs=("reference_wrong", "policy_frozen.kl_still"),
    ),
    Cause(
        "reference_unrelated", "the reference is an unrelated model, or its log-probabilities are of other tokens",
        {"reference_wrong.is_unrelated": 12.0, "reference_wrong.of_the_pairs": 12.0},
        "Load the reference from the weights that training starts from, and check that policy and reference see the same tokens, in "
        "the same order and with the same mask.",
        needs=("reference_wrong.is_unrelated", "reference_wrong.of_the_pairs"),
    ),
    Cause(
        "policy_frozen", "the policy does not move",
        {"policy_frozen": 6.0, "policy_frozen.loss_still": 2.0, "plateau.frozen": 2.0, "plateau.still": 2.0,
         "vanishing_gradient_anomaly": 1.0, "learning_rate_too_low": -2.0, "policy_collapse": -3.0, "entropy_collapse": -3.0,
         "dead_reward": -2.0, "nonfinite_metric.never": 9.0},
        "Check which parameters require gradients (frozen layers, an adapter that is not attached), that they belong to "
        "the optimizer, that {lr} is not 0, and that the precision of the weights can hold the updates.",
        needs=("policy_frozen", "plateau.frozen", "plateau.still", "nonfinite_metric.never"),
    ),
    Cause(
        "updates_too_small", "updates are far smaller than the learning rate implies",
        {"policy_frozen.undersized": 9.0, "plateau.hardly_moves": 1.0},
        "Check the optimizer: the epsilon of Adam (1e-8 is usual), plain gradient descent in place of Adam, gradients that are "
        "scaled down before the step, and weights in bf16.",
        needs=("policy_frozen.undersized",),
    ),
    Cause(
        "precision_too_low", "updates are rounded away by the precision of the weights",
        {"policy_frozen.rounded_away": 8.0, "policy_frozen.weights_still": 3.0, "policy_frozen.margin_still": 3.0, "policy_frozen.loss_still": 2.2, "policy_frozen.kl_still": 2.0},
        "Keep the weights in 32 bits, or raise {lr}: bf16 loses updates below 0.4 % of a weight.",
        needs=(
            "policy_frozen.weights_still", "policy_frozen.margin_still", "policy_frozen.loss_still", "policy_frozen.kl_still",
            "policy_frozen.rounded_away",
        ),
    ),
    Cause(
        "clip_range_wrong", "the clip range leaves no room",
        {"clip_saturation.saturated": 0.8, "clip_saturation.no_room": 9.0, "clip_saturation.on_policy": 0.0},
        "Set {clip} to 0.1 to 0.3.", needs=("clip_saturation.saturated", "clip_saturation.no_room"),
    ),
    Cause(
        "old_policy_wrong", "the ratio is not that of the policy to the one that sampled",
        {"clip_saturation.on_policy": 9.0},
        "Check where the old log-probabilities come from: the policy that sampled the batch, in the same mode and precision, and "
        "not the reference.", needs=("clip_saturation.on_policy",),
    ),
    Cause(
        "settings_unsound", "a setting has a value with which training cannot work",
        {"settings_unsound": 10.0},
        "Set it to the value that recipes use: what was found names the setting and the value.", needs=("settings_unsound",),
    ),
    Cause(
        "too_few_prompts", "the data has very few distinct prompts",
        {"too_few_prompts": 10.0},
        "Check how the data set is built and shuffled, and that the right column is used as prompt.",
        needs=("too_few_prompts",),
    ),
    Cause(
        "batch_too_small", "the batch is too small to learn from",
        {"batch_too_small": 8.0},
        "Raise {batch}, or accumulate gradients over more responses.", needs=("batch_too_small",),
    ),
    Cause(
        "weights_replaced", "other weights were loaded",
        {"weights_replaced": 6.0, "policy_collapse.slipping": 0.5, "policy_collapse.slipping_on_average": 0.5},
        "Check what was loaded at that step (a resume, a sync, averaged weights), and resume from the newest checkpoint.",
        needs=("weights_replaced", "policy_collapse.slipping", "policy_collapse.slipping_on_average"),
    ),
)  # fmt: skip
