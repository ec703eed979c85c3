"""Causes in what training does to the policy and the critic: exploited rewards, responses that do not end, updates that go too far."""

from __future__ import annotations

from rldk.judge.incidents.causes.cause import Cause

__all__ = ["POLICY"]

POLICY: tuple[Cause, ...] = (
    Cause(
        "reward_pays_for_length", "the reward favours length",
        {"length_bias": 5.0, "length_runaway": 1.5, "eos_starvation.stopped": 2.0, "eos_starvation.fewer": 2.0,
         "reward_hacking": 1.0, "entropy_collapse": -2.0, "learning_rate_too_high": -4.0, "policy_collapse": -2.0},
        "Normalise the reward by length or penalise over-long responses; compare the rewards of responses of equal length.",
        needs=("length_bias", "eos_starvation.stopped", "eos_starvation.fewer"),
    ),
    Cause(
        "reward_exploited", "the reward is being exploited",
        {"reward_hacking": 5.0, "reward_hacking.hollow": 6.0, "reward_hacking.answers_worse": 6.0, "reward_hacking.entropy_alone": 1.0, "reward_saturation": 1.0, "length_bias": 0.7, "kl_explosion": 0.5,
         "entropy_collapse": 0.5, "held_out_collapse": 1.0, "held_out_collapse.overoptimised": 4.0, "eos_starvation.stopped": 0.7,
         "learning_rate_too_high": -5.0, "entropy_explosion": -4.0},
        "Read samples; go back to the last checkpoint with good held-out quality; fix what the reward misses, and raise "
        "{kl_coef}.",
        needs=("reward_hacking", "reward_saturation", "eos_starvation.stopped", "held_out_collapse.overoptimised"),
    ),
    Cause(
        "responses_cut_short", "the length limit cuts every response",
        {"length_collapse.cut_short": 9.0, "eos_starvation.left_out": 7.0, "eos_starvation.almost_all_left_out": 9.0,
         "eos_starvation.never": 1.5, "eos_starvation.never_yet": 1.0},
        "Raise {length}.",
        needs=(
            "length_collapse.cut_short", "eos_starvation.left_out", "eos_starvation.almost_all_left_out", "eos_starvation.never",
            "eos_starvation.never_yet",
        ),
    ),
    Cause(
        "responses_cannot_end", "responses do not end",
        {"eos_starvation.never": 4.0, "eos_starvation.never_yet": 4.0, "eos_starvation.stopped": 1.6, "eos_starvation.fewer": 1.2,
         "eos_starvation.stopped_at_once": 5.0,
         "eos_starvation.fills_limit": 2.0, "length_runaway": 1.0, "dead_reward": 0.5, "policy_collapse": 0.3, "entropy_explosion": -2.0,
         "learning_rate_too_high": -3.0},
        "Check stop tokens and chat template, and that the end token is trained on and not masked; raise {length}; penalise "
        "responses that are cut off.",
        needs=("eos_starvation",),
    ),
    Cause(
        "kl_penalty_too_weak", "the KL penalty is too weak",
        {"kl_penalty_off.lost": 8.0, "kl_explosion": 2.5, "kl_trend_anomaly": 1.0, "target_range_anomaly": 1.0,
         "target_range_anomaly.below": 0.0,
         "coef_adaptation_anomaly": 0.5, "controller_responsiveness_anomaly": 1.0, "reward_hacking": 0.7, "reward_saturation": 0.7,
         "policy_collapse": 0.3, "exploding_gradient_anomaly": 0.3, "entropy_explosion": -2.0, "plateau": -1.0,
         "learning_rate_too_high": -1.0},
        "Raise {kl_coef} three- to tenfold, or lower {lr}.",
        needs=(
            "kl_explosion", "kl_penalty_off.lost", "kl_trend_anomaly", "target_range_anomaly.above", "coef_adaptation_anomaly",
            "controller_responsiveness_anomaly",
        ),
    ),
    Cause(
        "one_update_too_far", "one update went too far",
        {"kl_spike": 3.0, "kl_explosion": 0.5, "policy_collapse": 0.3, "kl_trend_anomaly": -1.5, "entropy_explosion": -2.0,
         "nonfinite_metric": -2.0},
        "Look at the batch of that step (rewards, lengths), keep {grad_clip} at 1 or less, and lower {lr} or {epochs} per batch; go "
        "back to the last good checkpoint if the KL does not fall again.",
        needs=("kl_spike",),
    ),
    Cause(
        "too_many_epochs", "each batch is used for too many updates",
        {"batch_overused": 12.0, "learning_rate_too_high.large_updates": 2.2,
         "learning_rate_too_high.large_updates_with_damage": 2.2, "learning_rate_too_high.large_updates_for_nothing": 2.2,
         "clip_saturation.saturated": 1.5, "ratio_explosion": 1.0},
        "Lower {epochs} per batch, and end them when an update has moved the policy by 0.02 to 0.1 nats per token.",
        needs=(
            "batch_overused", "learning_rate_too_high.large_updates", "learning_rate_too_high.large_updates_with_damage",
            "learning_rate_too_high.large_updates_for_nothing", "clip_saturation.saturated",
        ),
    ),
    Cause(
        "nothing_left_to_learn", "the reward is at its ceiling",
        {"reward_saturation": 2.5, "vanishing_gradient_anomaly": 0.5, "gradient_flow_anomaly": 0.5, "policy_collapse": -2.0,
         "reward_changed": -3.0},
        "Read samples: if the full score is deserved, continue with harder prompts or a finer reward, or end the run; if it is "
        "not, fix the reward.",
        needs=("reward_saturation",),
    ),
    Cause(
        "value_diverged", "the value function has diverged",
        {"value_divergence": 4.0, "value_unexplained": 1.0, "gradient_imbalance_anomaly": 0.7, "advantage_scale_anomaly": 0.7,
         "advantage_bias_anomaly": 0.5},
        "Lower {value_lr}, clip value updates and their gradients, normalise rewards; let the critic warm up before the policy "
        "moves.",
        needs=("value_divergence",),
    ),
    Cause(
        "values_uninformative", "the value function does not predict the returns",
        {"value_unexplained": 2.0, "value_frozen": 5.0, "value_frozen.loss_stays": 2.5, "advantage_bias_anomaly": 0.7,
         "advantage_trend_anomaly": 0.5},
        "Look at the value loss: if it falls, raise {value_lr} or its epochs; if it stays or grows, lower it, normalise rewards, "
        "and loosen the clipping of values.",
        needs=("value_unexplained", "value_frozen"),
    ),
    Cause(
        "gradients_out_of_balance", "policy and value gradients differ by orders of magnitude",
        {"gradient_imbalance_anomaly": 3.0, "gradient_balance_anomaly": 1.5, "ratio_trend_anomaly": 1.5, "value_divergence": -1.0},
        "Lower the coefficient of the side that dominates or {value_lr}, normalise returns, and clip the two norms separately.",
        needs=("gradient_imbalance_anomaly", "gradient_balance_anomaly", "ratio_trend_anomaly"),
    ),
    Cause(
        "nothing_learnt", "nothing is learnt",
        {"plateau": 2.0, "plateau.wanders": 1.0, "plateau.wanders_on": 0.5, "plateau.gains_nothing": 0.5, "vanishing_gradient_anomaly": 1.5,
         "gradient_flow_anomaly": 0.5, "policy_collapse": -2.0, "entropy_collapse": -2.0, "length_runaway": -2.0,
         "length_collapse": -2.0, "learning_rate_too_high": -2.0,
         "dead_reward": -1.0, "preference_degenerate": -1.0},
        "Raise {lr}, lower {kl_coef}, and check that gradients reach the weights.",
        needs=("plateau", "vanishing_gradient_anomaly"),
    ),
    Cause(
        "policy_degenerated", "the policy has degenerated",
        {"policy_collapse": 2.0, "entropy_collapse": 1.6, "entropy_explosion": 2.0, "held_out_collapse": 2.0, "length_collapse": 1.0,
         "length_collapse.cut_short": 0.0, "length_runaway": 0.5, "response_collapse": 2.0},
        "{back}; lower {lr}, raise {kl_coef}, and read samples from both sides of the fall.",
        needs=(
            "policy_collapse", "entropy_collapse", "entropy_explosion", "held_out_collapse", "length_collapse", "length_runaway",
            "response_collapse",
        ),
        advice_after={
            "entropy_collapse": "{back}; lower {lr}, raise the entropy bonus, {temperature} or {kl_coef}, and read samples from both "
            "sides of the fall.",
        },
    ),
)  # fmt: skip
