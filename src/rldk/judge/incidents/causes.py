"""The probable causes of incidents: the evidence for each, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["CAUSES", "TITLES", "Cause"]


@dataclass(frozen=True, slots=True)
class Cause:
    """A probable cause.

    `signs` gives the weight of each anomaly for or against it; the first to appear counts more. (A policy that has become
    noise is far from the reference whatever the penalty.) A sign is a type (`kl_explosion`) or one clause of it
    (`kl_penalty_off.negative`), which then replaces the weight of the type. `needs` names signs of which at least one must
    be there.

    `advice` may name settings, which are replaced by their names in the user's framework, with their values: `{lr}`, `{value_lr}`,
    `{kl_coef}`, `{epochs}`, `{clip}`, `{grad_clip}`, `{temperature}`, `{length}`, `{batch}`; and `{back}`, which is where to go
    back to.
    """

    name: str
    title: str
    signs: Mapping[str, float]
    advice: str
    needs: tuple[str, ...] = ()


CAUSES: tuple[Cause, ...] = (
    # What the first rows or a setting show directly.
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
        "learning_rate_too_high", "the learning rate is too high",
        {
            "learning_rate_too_high": 12.0, "learning_rate_too_high.large_updates": 2.5,
            "learning_rate_too_high.large_updates_with_damage": 3.0, "loss_explosion": 2.0, "exploding_gradient_anomaly": 1.5,
            "clip_saturation": 1.0, "clip_saturation.narrow": 0.0, "ratio_explosion": 1.0, "entropy_explosion": 1.5,
            "policy_collapse": 0.7, "policy_collapse.lost_at_once": 2.0, "kl_spike": 0.5, "gradient_stability_anomaly": 0.5,
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
        {"kl_penalty_too_strong": 12.0, "plateau.still": 0.5},
        "Lower {kl_coef} to 0.01 to 0.1.", needs=("kl_penalty_too_strong",),
    ),
    Cause(
        "reference_wrong", "the reference is the policy itself",
        {"reference_wrong": 9.0, "policy_frozen.kl_still": 1.0},
        "Load the reference as a separate model, from the weights that training starts from.",
        needs=("reference_wrong", "policy_frozen.kl_still"),
    ),
    Cause(
        "policy_frozen", "the policy does not move",
        {"policy_frozen": 6.0, "policy_frozen.loss_still": 2.0, "plateau.frozen": 2.0, "plateau.still": 2.0,
         "vanishing_gradient_anomaly": 1.0, "learning_rate_too_low": -2.0, "policy_collapse": -3.0, "entropy_collapse": -3.0,
         "dead_reward": -2.0},
        "Check which parameters require gradients (frozen layers, an adapter that is not attached), that they belong to "
        "the optimizer, that {lr} is not 0, and that the precision of the weights can hold the updates.",
        needs=("policy_frozen", "plateau.frozen", "plateau.still"),
    ),
    Cause(
        "precision_too_low", "updates are rounded away by the precision of the weights",
        {"policy_frozen.weights_still": 3.0, "policy_frozen.margin_still": 3.0, "policy_frozen.loss_still": 2.2, "policy_frozen.kl_still": 2.0},
        "Keep the weights in 32 bits, or raise {lr}: bf16 loses updates below 0.4 % of a weight.",
        needs=("policy_frozen.weights_still", "policy_frozen.margin_still", "policy_frozen.loss_still", "policy_frozen.kl_still"),
    ),
    Cause(
        "clip_range_wrong", "the clip range leaves no room",
        {"clip_saturation.saturated": 0.8},
        "Set {clip} to 0.1 to 0.3.", needs=("clip_saturation",),
    ),
    Cause(
        "too_few_prompts", "the data has hardly any different prompts",
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
    # The reward function.
    Cause(
        "reward_nonfinite", "the reward function returns NaN or infinity",
        {"nonfinite_metric.reward": 9.0, "missing_reward": 0.5},
        "Find the responses whose reward is not finite (a log of 0, a division by 0, a parser that fails), and give them the "
        "lowest reward instead.",
        needs=("nonfinite_metric.reward",),
    ),
    Cause(
        "numerical_failure", "numerical failure",
        {"nonfinite_metric": 6.0, "nonfinite_metric.reward": 1.0, "nonfinite_gradient": 6.0, "loss_explosion": 0.5,
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
        "reward_changed", "the reward itself was changed",
        {"reward_changed.worse": 6.0, "advantage_scale_anomaly": 0.5, "value_divergence": 0.5},
        "Look for what changed at that step: the reward function, its weights, its normalisation, the reward model or its server.",
        needs=("reward_changed.worse",),
    ),
    Cause(
        "reward_constant", "every response gets the same reward",
        {"dead_reward": 4.0, "dead_reward.dead_groups": 2.0, "dead_reward.hardly_any_groups": 1.0, "sparse_reward": 2.0,
         "plateau": 0.3, "eos_starvation": 0.3, "vanishing_gradient_anomaly": 0.5, "policy_collapse": -2.0,
         "entropy_collapse": -3.0, "entropy_explosion": -3.0, "learning_rate_too_high": -3.0, "kl_explosion": -0.5},
        "Score a few responses by hand: can the answer be parsed, can responses end before the length limit, does the reward "
        "separate better from worse responses? Start with prompts that the model solves sometimes.",
        needs=("dead_reward", "sparse_reward"),
    ),
    Cause(
        "reward_ignores_response", "the reward depends only on the prompt, or groups are too easy or too hard",
        {"dead_reward.dead_groups": 5.0, "dead_reward.hardly_any_groups": 3.0, "dead_reward.no_spread": 0.5, "sparse_reward": 1.0,
         "plateau.predictable": 5.0, "plateau.drifts": 1.5, "plateau.drifts_far": 1.5,
         "entropy_collapse": -3.0, "learning_rate_too_high": -3.0},
        "Score two different responses to one prompt by hand: they must differ. Drop prompts that are always or never solved.",
        needs=("dead_reward.dead_groups", "dead_reward.hardly_any_groups", "plateau.predictable", "plateau.drifts", "plateau.drifts_far"),
    ),
    Cause(
        "reward_random", "the reward does not depend on the response",
        {"plateau.drifts": 4.0, "plateau.drifts_far": 5.0, "plateau.flat": 1.0, "reward_changed.worse": 3.0, "kl_explosion": 0.3},
        "Check that each reward goes to its own response, and that it separates better from worse responses: score the same "
        "responses twice, and compare a good one with a bad one.",
        needs=("plateau.drifts", "plateau.drifts_far", "plateau.flat", "reward_changed.worse"),
    ),
    Cause(
        "reward_too_noisy", "the reward is mostly noise",
        {"plateau.drifts": 3.5, "plateau.drifts_far": 4.5, "plateau.flat": 0.5, "advantage_volatility_anomaly": 0.5},
        "Raise {batch}, average several scores per response, or use a less noisy reward.",
        needs=("plateau.drifts", "plateau.drifts_far", "plateau.flat"),
    ),
    # What the policy does with the reward.
    Cause(
        "reward_pays_for_length", "the reward favours length",
        {"length_bias": 5.0, "length_runaway": 1.5, "eos_starvation.stopped": 2.0, "eos_starvation.fewer": 2.0,
         "reward_hacking": 1.0, "entropy_collapse": -2.0, "learning_rate_too_high": -4.0, "policy_collapse": -2.0},
        "Normalise the reward by length or penalise over-long responses; compare the rewards of responses of equal length.",
        needs=("length_bias", "eos_starvation.stopped", "eos_starvation.fewer"),
    ),
    Cause(
        "reward_exploited", "the reward is being exploited",
        {"reward_hacking": 5.0, "reward_hacking.hollow": 6.0, "reward_saturation": 1.0, "length_bias": 0.7, "kl_explosion": 0.5,
         "entropy_collapse": 0.5, "held_out_collapse": 1.0, "eos_starvation.stopped": 0.7, "learning_rate_too_high": -5.0},
        "Read samples; go back to the last checkpoint with good held-out quality; fix what the reward misses, and raise "
        "{kl_coef}.",
        needs=("reward_hacking", "reward_saturation", "eos_starvation.stopped"),
    ),
    Cause(
        "responses_cut_short", "the length limit cuts every response",
        {"length_collapse.cut_short": 9.0, "eos_starvation.never": 1.5, "eos_starvation.never_yet": 1.0},
        "Raise {length}.", needs=("length_collapse.cut_short", "eos_starvation.never", "eos_starvation.never_yet"),
    ),
    Cause(
        "responses_cannot_end", "responses do not end",
        {"eos_starvation.never": 4.0, "eos_starvation.never_yet": 4.0, "eos_starvation.stopped": 1.6, "eos_starvation.fewer": 1.2,
         "length_runaway": 1.0, "dead_reward": 0.5, "policy_collapse": 0.3, "entropy_explosion": -2.0,
         "learning_rate_too_high": -3.0},
        "Check stop tokens and chat template, and that the end token is trained on and not masked; raise {length}; penalise "
        "responses that are cut off.",
        needs=("eos_starvation",),
    ),
    Cause(
        "kl_penalty_too_weak", "the KL penalty is too weak",
        {"kl_penalty_off.lost": 8.0, "kl_explosion": 2.5, "kl_trend_anomaly": 1.0, "target_range_anomaly": 1.0,
         "coef_adaptation_anomaly": 0.5, "controller_responsiveness_anomaly": 1.0, "reward_hacking": 0.7, "reward_saturation": 0.7,
         "policy_collapse": 0.3, "exploding_gradient_anomaly": 0.3, "entropy_explosion": -2.0, "plateau": -1.0,
         "learning_rate_too_high": -1.0},
        "Raise {kl_coef} three- to tenfold, or lower {lr}.",
        needs=(
            "kl_explosion", "kl_penalty_off.lost", "kl_trend_anomaly", "target_range_anomaly", "coef_adaptation_anomaly",
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
        {"learning_rate_too_high.large_updates": 2.2, "learning_rate_too_high.large_updates_with_damage": 2.2,
         "clip_saturation.saturated": 1.5, "ratio_explosion": 1.0},
        "Lower {epochs} per batch, and end them when an update has moved the policy by 0.02 to 0.1 nats per token.",
        needs=("learning_rate_too_high.large_updates", "learning_rate_too_high.large_updates_with_damage", "clip_saturation.saturated"),
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
        "critic_of_no_use", "the value function does not predict the returns",
        {"value_unexplained": 2.0, "value_frozen": 5.0, "advantage_bias_anomaly": 0.7, "advantage_trend_anomaly": 0.5},
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
        {"plateau": 2.0, "vanishing_gradient_anomaly": 1.5, "gradient_flow_anomaly": 0.5, "policy_collapse": -2.0,
         "entropy_collapse": -2.0, "length_runaway": -2.0, "length_collapse": -2.0, "learning_rate_too_high": -2.0,
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
    ),
    Cause(
        "sampler_out_of_step", "sampler and trainer disagree",
        {"train_inference_mismatch": 3.0, "sampler_mismatch": 3.0, "importance_weights_degenerate": 2.0, "negative_kl": 0.7,
         "policy_collapse": 0.3},
        "Sync the sampler's weights each step, use one precision and temperature, and correct with truncated importance weights.",
        needs=("train_inference_mismatch", "sampler_mismatch", "importance_weights_degenerate"),
    ),
    Cause(
        "update_throttled", "importance weights scale the updates down",
        {"throttled_update": 6.0, "importance_weights_degenerate": 1.0, "plateau": 0.5, "vanishing_gradient_anomaly": 0.5},
        "Use importance weights per token instead of per sequence, or normalise them by length; check that top-p and {temperature} "
        "are the same in sampler and trainer.",
        needs=("throttled_update",),
    ),
    Cause(
        "rollouts_too_old", "responses are too old when they are trained on",
        {"stale_rollouts": 5.0, "importance_weights_degenerate": 1.0, "sampler_mismatch": 1.0, "clip_saturation": 0.5},
        "Give sampling more of the hardware, lower {length} or the allowed staleness, or sync weights more often.",
        needs=("stale_rollouts",),
    ),
    Cause(
        "tools_abandoned", "the policy has stopped using its tools",
        {"tools_abandoned": 5.0, "broken_episodes": 0.5, "length_collapse": 0.5},
        "Read episodes from before and after the fall, look for calls that fail or cost reward, and check that the results of "
        "calls are masked in the loss.",
        needs=("tools_abandoned",),
    ),
    Cause(
        "episodes_break", "episodes are aborted or cannot be read",
        {"broken_episodes": 5.0, "missing_reward": 0.5, "entropy_explosion": -1.0},
        "Read aborted and unreadable episodes; look for time limits, a tool server that is down, and whether {length} cuts calls.",
        needs=("broken_episodes",),
    ),
    Cause(
        "experts_unbalanced", "the experts are used unevenly, or differ between sampler and trainer",
        {"expert_imbalance": 5.0, "sampler_mismatch": 0.5, "train_inference_mismatch": 0.5},
        "Raise the coefficient of the load-balancing loss or freeze the router, and replay the sampler's routing in the trainer.",
        needs=("expert_imbalance",),
    ),
    Cause(
        "prompts_too_hard", "the prompts are too hard",
        {"uninformative_groups": 4.0, "sparse_reward": 1.0, "dead_reward": 0.5, "plateau": 0.5},
        "Start with prompts that the model solves sometimes, sample more responses per prompt, or give partial credit.",
        needs=("uninformative_groups",),
    ),
    Cause(
        "metric_vanished", "a metric is not logged any more",
        {"vanished_metric": 3.0},
        "Look at the row where it was last logged, and check weights and loss for values that are not finite: some trainers leave "
        "those out.",
        needs=("vanished_metric",),
    ),
    Cause(
        "kl_estimate_wrong", "the KL is not measured correctly",
        {"negative_kl": 2.5},
        "Check that policy and reference see the same tokens, mask and temperature, and that the reference is not being trained.",
        needs=("negative_kl",),
    ),
    Cause(
        "kl_controller_unstable", "the KL controller is badly tuned",
        {"controller_oscillation_anomaly": 2.5, "controller_overshoot_anomaly": 2.0, "controller_responsiveness_anomaly": 1.0,
         "coef_adaptation_anomaly": 1.8, "kl_volatility_anomaly": 0.8, "target_range_anomaly": 0.3},
        "Lengthen the controller's horizon if it swings, shorten it if it lags, and check that it is on if the coefficient does "
        "not move.",
        needs=(
            "controller_oscillation_anomaly", "controller_overshoot_anomaly", "controller_responsiveness_anomaly",
            "coef_adaptation_anomaly",
        ),
    ),
    Cause(
        "preference_overfit", "preference training has gone too far",
        {"preference_degenerate": 3.0, "preference_unlearnt.displaced": 2.0, "preference_unlearnt.sinking": 2.0},
        "Stop earlier, raise {kl_coef}, lower {lr}, or add a supervised term on the chosen answers.",
        needs=("preference_degenerate", "preference_unlearnt.displaced", "preference_unlearnt.sinking"),
    ),
    Cause(
        "preference_beta_wrong", "beta of preference training is far too large",
        {"preference_unlearnt.beta_huge": 8.0, "preference_unlearnt.beta_absurd": 8.0, "preference_degenerate": 1.0, "preference_unlearnt.displaced": 1.0},
        "Set {kl_coef} to 0.05 to 0.5.",
        needs=("preference_unlearnt.beta_huge", "preference_unlearnt.beta_absurd", "preference_degenerate", "preference_unlearnt.displaced"),
    ),
    Cause(
        "labels_noisy", "preference pairs have the wrong order",
        {"preference_unlearnt.undecided": 4.0},
        "Read pairs: is the chosen answer the better one?", needs=("preference_unlearnt.undecided",),
    ),
    Cause(
        "machine_trouble", "the machine has a problem",
        {"throughput_drop": 2.0, "memory_pressure": 2.0},
        "Check the accelerator's load, temperature and memory, and what else runs on the node.",
        needs=("throughput_drop", "memory_pressure"),
    ),
    Cause(
        "log_mixed_up", "the log contains several runs",
        {"step_regression": 2.0},
        "Give each run its own log, and resume with `resume_step`.",
        needs=("step_regression",),
    ),
)  # fmt: skip
"""Every cause that rldk names, the most specific first: of two with the same weight the first is used."""

TITLES = {cause.name: cause.title for cause in CAUSES}
"""The title of each cause."""
