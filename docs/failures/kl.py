"""Failures of the KL from the reference and its penalty."""

from __future__ import annotations

from failures.failure import Failure

__all__ = ["FAILURES"]

FAILURES = (
    Failure(
        "kl_explosion", "The KL runs away",
        "The KL from the reference grows beyond what healthy runs reach, often faster and faster.",
        ("kl", "reward"),
        {
            "kl_spike": "Single rows jump, and the level stays.",
            "reference_wrong": "The KL is far from zero in the first row: the reference is another model.",
            "learning_rate_too_high": "The KL of each single update is large too.",
        },
        ("first_kl_not_zero",),
    ),
    Failure(
        "kl_spike", "The KL jumps to many times its level",
        "Single rows stand far above the rest, again and again, or the level itself jumps and stays up.",
        ("kl", "gradients"),
        {
            "kl_explosion": "The level leaves the range of healthy runs and keeps rising.",
            "kl_volatility_anomaly": "Every row swings, not a few.",
            "weights_replaced": "The KL falls at once instead, back towards zero.",
        },
        ("first_kl_not_zero",),
    ),
    Failure(
        "kl_trend_anomaly", "The KL rises faster and faster",
        "The KL is above what most healthy runs reach, has been rising for a hundred rows, and each stretch rises more than the "
        "one before.",
        ("kl",),
        {
            "kl_explosion": "What follows: the KL is beyond what any healthy run reaches.",
            "kl_penalty_off": "The coefficient has dropped to zero or below: nothing holds the policy.",
            "target_range_anomaly": "There is a target, and the KL stays outside its range.",
        },
    ),
    Failure(
        "kl_volatility_anomaly", "The KL swings from row to row",
        "Neighbouring rows differ by as much as the whole level of a healthy run.",
        ("kl",),
        {
            "kl_spike": "Most rows are calm, and a few jump.",
            "controller_oscillation_anomaly": "The swings are slow, and the KL coefficient swings with them.",
        },
        ("negative_kl",),
        recorded="grpo-dense--s1--truncated_excluded",
    ),
    Failure(
        "negative_kl", "The KL is negative",
        "The KL stays below zero, row after row. A true KL cannot: the probabilities come from different models or settings.",
        ("kl",),
        {
            "sampler_mismatch": "The trainer logs the disagreement with the sampler directly.",
            "reference_wrong": "The KL is exactly zero while the policy moves.",
        },
        ("negative_kl", "kl_zero_without_penalty"),
    ),
    Failure(
        "reference_wrong", "The KL is exactly zero while the policy learns",
        "The reward rises, the penalty is on, and the KL is 0 in every row: the policy is compared with itself.",
        ("kl", "reward"),
        {
            "policy_frozen": "The KL is zero because the policy does not move: the reward does not rise either.",
            "kl_penalty_off": "The coefficient is 0, and the KL may not have been measured at all.",
        },
        ("kl_zero_without_penalty", "first_kl_not_zero"),
        recorded="rloo-dense--s2--reference_shared",
    ),
    Failure(
        "kl_penalty_off", "The KL coefficient drops to zero or below",
        "The coefficient falls to 0, or has the wrong sign, and from there on the KL climbs.",
        ("kl_coef", "kl"),
        {
            "coef_adaptation_anomaly": "The coefficient stops at some value and moves no more.",
            "kl_explosion": "The coefficient is as it was, and the KL still runs away.",
        },
        ("kl_zero_without_penalty",),
        recorded="ppo-sparse--s2--kl_coef_negative",
    ),
    Failure(
        "kl_penalty_too_strong", "The penalty outweighs the reward",
        "The KL coefficient is 2 or more, the KL stays tiny, and the reward does not move.",
        ("kl_coef", "reward"),
        {
            "plateau": "The reward does not move, and the coefficient is in its usual range.",
            "learning_rate_too_low": "The policy does not move because the updates are too small.",
        },
        recorded="ppo-old-dense--s1--kl_coef_huge",
    ),
    Failure(
        "target_range_anomaly", "The KL stays outside the range of its target",
        "The curve settles far from the line of the target and does not come back.",
        ("kl", "kl_coef"),
        {
            "controller_responsiveness_anomaly": "The coefficient moves the wrong way, or far too slowly.",
            "coef_adaptation_anomaly": "The coefficient has stopped moving.",
            "kl_explosion": "The KL is beyond what any healthy run reaches, whatever its target.",
        },
        fault="controller_stuck",
    ),
    Failure(
        "controller_responsiveness_anomaly", "The KL leaves its target, and the coefficient hardly answers",
        "The KL is more than twice its target for dozens of rows, while the coefficient moves by a few percent or the wrong way.",
        ("kl", "kl_coef"),
        {
            "coef_adaptation_anomaly": "The coefficient used to move and now stands still.",
            "controller_overshoot_anomaly": "The coefficient answers too much, and the KL falls far below its target.",
        },
    ),
    Failure(
        "coef_adaptation_anomaly", "The KL coefficient is stuck",
        "A coefficient that used to move keeps one value, often at a bound, while the KL is far from its target.",
        ("kl_coef", "kl"),
        {
            "controller_responsiveness_anomaly": "The coefficient still moves, but the wrong way or too little.",
            "kl_penalty_off": "It stands at zero: there is no penalty any more.",
        },
        fault="controller_stuck",
    ),
    Failure(
        "controller_overshoot_anomaly", "The KL passes through its target and far beyond it",
        "The coefficient is raised so far that the KL falls from twice its target to less than half of it, or the reverse.",
        ("kl", "kl_coef"),
        {
            "controller_oscillation_anomaly": "It happens again and again.",
            "weights_replaced": "The KL falls within one row, and the coefficient did not change before.",
        },
        fault="controller_oscillation",
    ),
    Failure(
        "controller_oscillation_anomaly", "KL and coefficient swing in turn",
        "The coefficient goes up and down, and the KL follows with the opposite phase.",
        ("kl_coef", "kl"),
        {
            "controller_overshoot_anomaly": "A single swing.",
            "kl_volatility_anomaly": "The KL jumps from row to row, and the coefficient stays.",
        },
        fault="controller_oscillation",
    ),
)  # fmt: skip
