"""The causes that incidents are put down to: what speaks for each, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["CAUSES", "TITLES", "Cause"]


@dataclass(frozen=True, slots=True)
class Cause:
    """A probable cause; `signs` weighs the anomalies that speak for it, more if they came first, or against it: a policy
    that has become noise is far from the reference whatever the penalty.

    `needs` names anomalies of which at least one must be there. `advice` may use the run's numbers at that moment: `{lr}`,
    `{value_lr}`, `{kl_coef}`, `{kl}`, `{length}`; and `{back}`, which is where to go back to.
    """

    name: str
    title: str
    signs: Mapping[str, float]
    advice: str
    needs: tuple[str, ...] = ()


CAUSES: tuple[Cause, ...] = (
    Cause(
        "numerical_failure", "numerical failure",
        {"nonfinite_metric": 4.0, "loss_explosion": 0.5, "exploding_gradient_anomaly": 0.5},
        "{back}, skip steps whose gradients are not finite, and look for a log of 0, a division by "
        "a spread of 0, or half precision that overflows; lower the learning rate ({lr}).",
        needs=("nonfinite_metric",),
    ),
    Cause(
        "learning_rate_too_high", "the learning rate is too high",
        {
            "learning_rate_too_high": 3.0, "loss_explosion": 2.0, "exploding_gradient_anomaly": 1.5, "clip_saturation": 1.0, "ratio_explosion": 1.0,
            "entropy_explosion": 1.5, "policy_collapse": 0.7, "kl_spike": 0.5, "gradient_stability_anomaly": 0.5, "length_runaway": 0.3, "entropy_collapse": 0.5,
        },
        "{back} and lower the learning rate (it was {lr}) three- to tenfold; clip gradients at 1; take "
        "fewer epochs per batch.",
        needs=("learning_rate_too_high", "loss_explosion", "exploding_gradient_anomaly", "ratio_explosion", "clip_saturation", "entropy_explosion", "policy_collapse"),
    ),
    Cause(
        "kl_penalty_too_weak", "the KL penalty is too weak",
        {"kl_explosion": 3.0, "kl_penalty_off": 3.0, "kl_trend_anomaly": 1.0, "target_range_anomaly": 1.0, "coef_adaptation_anomaly": 0.5, "controller_responsiveness_anomaly": 1.0,
         "reward_hacking": 0.7, "reward_saturation": 0.7, "policy_collapse": 0.3, "exploding_gradient_anomaly": 0.3, "entropy_explosion": -2.0},
        "Raise the KL coefficient (it was {kl_coef}) three- to tenfold, or lower the learning rate ({lr}); KL was {kl}.",
        needs=("kl_explosion", "kl_penalty_off", "kl_trend_anomaly", "target_range_anomaly", "coef_adaptation_anomaly", "controller_responsiveness_anomaly"),
    ),
    Cause(
        "one_update_too_far", "one update went too far",
        {"kl_spike": 3.0, "kl_explosion": 2.0, "policy_collapse": 0.3, "kl_trend_anomaly": -1.5, "entropy_explosion": -2.0, "nonfinite_metric": -2.0},
        "Look at the batch of that step (rewards, lengths), clip gradients at 1, and lower the learning rate (it was {lr}) or the "
        "epochs per batch; go back to the last good checkpoint if the KL ({kl}) does not come down.",
        needs=("kl_spike",),
    ),
    Cause(
        "reward_exploited", "the reward is being exploited",
        {"reward_hacking": 7.0, "reward_saturation": 1.0, "length_bias": 0.7, "kl_explosion": 0.5, "entropy_collapse": 0.5,
         "learning_rate_too_high": -5.0},
        "Read samples; go back to the checkpoint where held-out quality held; mend what the reward fails to see, and raise the KL "
        "coefficient (it was {kl_coef}).",
        needs=("reward_hacking", "reward_saturation"),
    ),
    Cause(
        "nothing_left_to_learn", "the reward is at its ceiling",
        {"reward_saturation": 2.5, "vanishing_gradient_anomaly": 0.5, "gradient_flow_anomaly": 0.5, "policy_collapse": -2.0},
        "Read samples: if the full score is earned, stop here and keep this checkpoint, or go on with harder prompts or a finer "
        "reward; if it is not, mend the reward.",
        needs=("reward_saturation",),
    ),
    Cause(
        "length_exploit", "the reward pays for length",
        {"length_bias": 2.5, "length_runaway": 1.0},
        "Normalise the reward by length or penalise over-long responses (they were {length} tokens); compare reward among "
        "responses of one length.",
        needs=("length_bias",),
    ),
    Cause(
        "responses_grow_without_end", "responses grow until the length limit cuts them",
        {"length_runaway": 3.0, "eos_starvation": 1.0, "policy_collapse": 0.7, "entropy_explosion": -2.0},
        "{back}; penalise over-long responses (they were {length} tokens) and leave those that were cut "
        "off out of the loss; check that the end token is trained on; raise the KL coefficient ({kl_coef}).",
        needs=("length_runaway",),
    ),
    Cause(
        "responses_do_not_end", "responses do not end",
        {"eos_starvation": 2.0, "length_runaway": 0.5, "dead_reward": 1.2},
        "Raise the length limit (responses were {length} tokens), check stop tokens and chat template, or start from a model "
        "that was tuned to stop.",
        needs=("eos_starvation",),
    ),
    Cause(
        "dead_reward", "the reward carries no signal",
        {"dead_reward": 3.0, "missing_reward": 2.0, "sparse_reward": 2.0, "plateau": 0.5, "eos_starvation": 0.4, "vanishing_gradient_anomaly": 0.5, "policy_collapse": -1.0},
        "Score a few responses by hand, check the parsing of answers, and begin with prompts that the model solves sometimes.",
        needs=("dead_reward", "missing_reward", "sparse_reward"),
    ),
    Cause(
        "value_function_diverged", "the value function has diverged",
        {"value_divergence": 4.0, "value_unexplained": 1.0, "gradient_imbalance_anomaly": 0.7, "advantage_scale_anomaly": 0.7, "advantage_bias_anomaly": 0.5},
        "Lower the critic's learning rate (it was {value_lr}), clip value updates and their gradients, normalise rewards; let the "
        "critic warm up before the policy moves.",
        needs=("value_divergence",),
    ),
    Cause(
        "critic_of_no_use", "the critic explains nothing",
        {"value_unexplained": 2.0, "advantage_bias_anomaly": 0.7, "advantage_trend_anomaly": 0.5},
        "Look at the value loss: if it falls, raise the critic's learning rate (it was {value_lr}) or its epochs; if it stays or "
        "grows, lower it, normalise rewards, and loosen the clipping of values.",
        needs=("value_unexplained",),
    ),
    Cause(
        "gradients_out_of_balance", "policy and value gradients have come apart",
        {"gradient_imbalance_anomaly": 3.0, "gradient_balance_anomaly": 1.5, "ratio_trend_anomaly": 1.5, "value_divergence": -1.0},
        "Lower the coefficient of the side that dominates or its learning rate (the critic's was {value_lr}), normalise returns, and "
        "clip the two norms separately.",
        needs=("gradient_imbalance_anomaly", "gradient_balance_anomaly", "ratio_trend_anomaly"),
    ),
    Cause(
        "nothing_learnt", "the policy does not move",
        {"plateau": 2.5, "vanishing_gradient_anomaly": 1.0, "gradient_flow_anomaly": 0.5, "policy_collapse": -2.0, "entropy_collapse": -2.0,
         "length_runaway": -2.0, "length_collapse": -2.0, "learning_rate_too_high": -2.0, "dead_reward": -1.0, "preference_degenerate": -1.0},
        "Raise the learning rate (it was {lr}), lower the KL coefficient ({kl_coef}), and check that gradients reach the weights.",
        needs=("plateau", "vanishing_gradient_anomaly"),
    ),
    Cause(
        "policy_degenerated", "the policy has degenerated",
        {"policy_collapse": 2.0, "entropy_collapse": 1.6, "entropy_explosion": 2.0, "held_out_collapse": 1.5, "length_collapse": 1.0, "length_runaway": 0.5},
        "{back}; lower the learning rate (it was {lr}), raise the KL coefficient ({kl_coef}), and read "
        "samples from both sides of the fall.",
        needs=("policy_collapse", "entropy_collapse", "entropy_explosion", "held_out_collapse", "length_collapse", "length_runaway"),
    ),
    Cause(
        "sampler_out_of_step", "sampler and trainer disagree",
        {"train_inference_mismatch": 3.0, "negative_kl": 0.7, "policy_collapse": 0.3},
        "Sync the sampler's weights each step, use one precision and temperature, and correct with truncated importance weights.",
        needs=("train_inference_mismatch",),
    ),
    Cause(
        "kl_estimate_wrong", "the KL is not measured right",
        {"negative_kl": 2.5},
        "Check that policy and reference see the same tokens, mask and temperature, and that the reference is not being trained.",
        needs=("negative_kl",),
    ),
    Cause(
        "kl_controller_unstable", "the KL controller is out of tune",
        {"controller_oscillation_anomaly": 2.5, "controller_overshoot_anomaly": 2.0, "controller_responsiveness_anomaly": 1.0, "coef_adaptation_anomaly": 1.8,
         "kl_volatility_anomaly": 0.8, "target_range_anomaly": 0.3},
        "Lengthen the controller's horizon if it swings, shorten it if it lags, and check that it is on if the coefficient does not "
        "move; the coefficient was {kl_coef} and KL {kl}.",
        needs=("controller_oscillation_anomaly", "controller_overshoot_anomaly", "controller_responsiveness_anomaly", "coef_adaptation_anomaly"),
    ),
    Cause(
        "preference_overfit", "preference training has gone too far",
        {"preference_degenerate": 3.0},
        "Stop earlier, raise beta, lower the learning rate (it was {lr}), or add a supervised term on the chosen answers.",
        needs=("preference_degenerate",),
    ),
    Cause(
        "machine_trouble", "the machine is in trouble",
        {"throughput_drop": 2.0, "memory_pressure": 2.0},
        "Look at the accelerator's use, temperature and memory, and at what else runs on the node.",
        needs=("throughput_drop", "memory_pressure"),
    ),
    Cause(
        "log_mixed_up", "the log is mixed up",
        {"step_regression": 2.0},
        "Give each run a log of its own, and resume with `resume_step`.",
        needs=("step_regression",),
    ),
)  # fmt: skip
"""Every cause that rldk names, the most particular first: of two with the same weight the first is taken."""

TITLES = {cause.name: cause.title for cause in CAUSES}
"""What each cause is called where people read it."""
