"""The words of the labels: families of anomaly, causes, and which of rldk's causes name which of them.

The vocabulary is fixed with the labels. A judge that is rebuilt may rename its causes; then `NAMES` changes, and nothing else.
"""

from __future__ import annotations

__all__ = ["CAUSES", "FAMILIES", "MISLEADING", "names_of"]

FAMILIES = {
    "reward": "what the responses are worth: dead, missing, falling, exploited",
    "policy": "what the policy says: entropy, ratio, clipping, agreement with the sampler",
    "kl": "the distance to the reference, its penalty and its controller",
    "length": "how long responses are and whether they end",
    "value": "the value function",
    "gradients": "size, balance and flow of gradients",
    "advantages": "the distribution of advantages",
    "preference": "margins and accuracy of preference pairs",
    "run": "losses, learning rate, numbers that are not finite, the log itself",
}
"""A family is a folder of `rldk.detectors`."""

CAUSES = {
    "learning_rate_too_high": "the learning rate is far too high",
    "learning_rate_too_low": "the learning rate is zero, tiny, or decayed to nothing",
    "kl_penalty_too_weak": "nothing or too little holds the policy near its reference",
    "kl_penalty_too_strong": "the KL penalty leaves no room to learn",
    "kl_penalty_negative": "the KL penalty pays for leaving the reference",
    "reference_wrong": "the reference is the policy itself, or another model",
    "kl_controller_unstable": "the controller of the KL coefficient swings",
    "reward_constant": "every response gets the same reward",
    "reward_flipped": "the reward has the wrong sign",
    "reward_changed": "the reward is on another scale than before",
    "reward_random": "the reward has nothing to do with the response it is given to",
    "reward_too_noisy": "the reward is mostly noise",
    "reward_ignores_response": "the reward depends on the prompt only",
    "reward_nonfinite": "the reward function returns NaN or infinity",
    "reward_missing": "the reward function returns nothing for some responses",
    "reward_pays_for_length": "the reward grows with the length of the response",
    "reward_exploited": "the reward pays for something other than quality, and the policy found it",
    "responses_cannot_end": "the end token cannot be sampled",
    "responses_cut_short": "the length limit cuts every response",
    "temperature_wrong": "the sampling temperature is far from 1",
    "dropout_active": "dropout is active while the policy is sampled and judged",
    "rollouts_stale": "the updates use old rollouts",
    "policy_frozen": "the optimizer does not change the policy",
    "value_frozen": "the value function does not learn",
    "value_diverged": "the value function has diverged",
    "value_overwritten": "the value function was replaced",
    "too_many_epochs": "each batch is used for too many updates",
    "clip_range_wrong": "the clip range is far too wide or too narrow",
    "gradient_clip_too_tight": "gradients are clipped to nothing",
    "gradients_unclipped": "gradients are not clipped",
    "weights_replaced": "the weights were changed by something other than the optimizer",
    "optimizer_state_lost": "the optimizer's state was lost",
    "precision_too_low": "updates are rounded away by the precision of the weights",
    "advantages_unscaled": "advantages are not normalised",
    "batch_too_small": "the batch is too small to learn from",
    "too_few_prompts": "the data has hardly any different prompts",
    "data_changed": "the prompts are of another kind than before",
    "labels_swapped": "chosen and rejected answers are swapped",
    "labels_noisy": "many preference pairs have the wrong order",
    "preference_beta_wrong": "beta of preference training is far too small or too large",
    "numerical_failure": "a number overflowed or was undefined",
}

NAMES = {
    "one_update_too_far": ("learning_rate_too_high", "too_many_epochs", "weights_replaced", "clip_range_wrong"),
    "values_uninformative": ("value_frozen",),
    "gradients_out_of_balance": ("value_diverged", "advantages_unscaled"),
    "nothing_learnt": ("learning_rate_too_low", "policy_frozen", "gradient_clip_too_tight", "precision_too_low"),
    "policy_degenerated": ("weights_replaced",),
    "responses_not_sampled": ("temperature_wrong",),
    "updates_too_small": ("gradient_clip_too_tight", "precision_too_low"),
    "sampler_out_of_step": ("rollouts_stale",),
    "kl_estimate_wrong": ("reference_wrong", "dropout_active"),
    "preference_overfit": ("preference_beta_wrong",),
    "labels_noisy": ("labels_noisy", "labels_swapped"),
    "value_diverged": ("value_diverged", "value_overwritten"),
}
"""rldk's cause -> the causes of the vocabulary that it names, where the names differ."""

_STOP_HERE = ("nothing_left_to_learn",)
MISLEADING = {
    "learning_rate_too_high": ("nothing_learnt", "learning_rate_too_low", *_STOP_HERE),
    "learning_rate_too_low": ("learning_rate_too_high", "one_update_too_far", *_STOP_HERE),
    "gradient_clip_too_tight": ("learning_rate_too_high", "one_update_too_far", *_STOP_HERE),
    "policy_frozen": ("learning_rate_too_high", "one_update_too_far", *_STOP_HERE),
    "precision_too_low": ("learning_rate_too_high", "one_update_too_far", *_STOP_HERE),
    "kl_penalty_too_weak": ("kl_penalty_too_strong", *_STOP_HERE),
    "kl_penalty_too_strong": ("kl_penalty_too_weak", "learning_rate_too_high", *_STOP_HERE),
    "kl_penalty_negative": ("kl_penalty_too_strong", *_STOP_HERE),
    "too_many_epochs": ("nothing_learnt", "learning_rate_too_low", *_STOP_HERE),
}
"""Cause -> what rldk might say whose advice makes it worse. Of any sick run, that all is learnt, is the worst advice."""


def names_of(cause: str) -> frozenset[str]:
    """The causes of the vocabulary that a cause of rldk's names."""
    return frozenset(NAMES.get(cause, (cause,)))


def misleads(cause: str, said: str) -> bool:
    """Whether what rldk said would make a run with this cause worse."""
    return said in MISLEADING.get(cause, _STOP_HERE)
