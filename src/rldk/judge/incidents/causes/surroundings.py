"""Causes around the policy: sampler, episodes, experts, prompts, measurements, preference pairs, the machine and the log."""

from __future__ import annotations

from rldk.judge.incidents.causes.cause import Cause

__all__ = ["SURROUNDINGS"]

SURROUNDINGS: tuple[Cause, ...] = (
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
        "kl_estimate_wrong", "the responses do not come from the policy that is measured, or the KL is not measured correctly",
        {"negative_kl": 2.5},
        "Check that the sampler has the current weights (a vLLM server that is not synced has old ones), that policy and reference "
        "see the same tokens, mask and temperature, and that the reference is not being trained.",
        needs=("negative_kl",),
    ),
    Cause(
        "kl_controller_unstable", "the KL controller is badly tuned",
        {"controller_oscillation_anomaly": 2.5, "controller_overshoot_anomaly": 2.0, "controller_responsiveness_anomaly": 1.0,
         "coef_adaptation_anomaly": 1.8, "kl_volatility_anomaly": 0.8, "target_range_anomaly": 0.3,
         "kl_penalty_too_strong.driven_up": 11.0},
        "Lengthen the controller's horizon if it swings, shorten it if it lags, and check that it is on if the coefficient does "
        "not move.",
        needs=(
            "controller_oscillation_anomaly", "controller_overshoot_anomaly", "controller_responsiveness_anomaly",
            "coef_adaptation_anomaly", "kl_penalty_too_strong.driven_up",
        ),
    ),
    Cause(
        "preference_overfit", "preference training has gone too far",
        {
            "preference_degenerate": 3.0, "preference_degenerate.flat_for_long": 7.0, "preference_unlearnt.displaced": 2.0,
            "preference_unlearnt.sinking": 2.0, "preference_unlearnt.held_out_chance": 5.0,
            "preference_unlearnt.held_out_worse": 5.0, "preference_unlearnt.held_out_slips": 5.0,
        },
        "Stop earlier, raise {kl_coef}, lower {lr}, or add a supervised term on the chosen answers.",
        needs=(
            "preference_degenerate", "preference_unlearnt.displaced", "preference_unlearnt.sinking",
            "preference_unlearnt.held_out_chance", "preference_unlearnt.held_out_worse", "preference_unlearnt.held_out_slips",
        ),
    ),
    Cause(
        "advantages_wrong", "something other than the advantages of the group is optimised",
        {"advantage_bias_anomaly.loss_off_centre": 6.0},
        "Check what is done to the advantages before the loss: their sign, a mask, another term such as an entropy bonus.",
        needs=("advantage_bias_anomaly.loss_off_centre",),
    ),
    Cause(
        "pairs_misread", "the tokens of the pairs, or their reference log-probabilities, are wrong",
        {"preference_degenerate.as_random": 9.0, "preference_degenerate.both_rise": 9.0},
        "Check that labels are shifted by one token against the logits, that policy, reference and data use one tokenizer, and "
        "that precomputed reference log-probabilities belong to the same rows.",
        needs=("preference_degenerate.as_random", "preference_degenerate.both_rise"),
    ),
    Cause(
        "pairs_differ_in_length", "one answer of each pair is far longer, or far less likely, than the other",
        {"preference_degenerate.lopsided": 9.0},
        "Compare the lengths of chosen and rejected answers, balance them, or use a loss that is normalised by length.",
        needs=("preference_degenerate.lopsided",),
    ),
    Cause(
        "preference_beta_wrong", "beta of preference training is far too large",
        {"preference_unlearnt.beta_absurd": 8.0, "preference_degenerate": 1.0, "preference_unlearnt.displaced": 1.0},
        "Set {kl_coef} to 0.05 to 0.5.",
        needs=("preference_unlearnt.beta_absurd", "preference_degenerate", "preference_unlearnt.displaced"),
    ),
    Cause(
        "labels_noisy", "the order of the pairs is not learnt",
        {"preference_unlearnt.undecided": 4.0, "preference_unlearnt.no_margin": 4.0, "preference_unlearnt.inverted": 6.0},
        "Read pairs as the trainer gets them: is the chosen answer the better one, and are the two not swapped? If the loss has not left 0.69 at all, raise {lr} and check what is trained.",
        needs=("preference_unlearnt.undecided", "preference_unlearnt.no_margin", "preference_unlearnt.inverted"),
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
