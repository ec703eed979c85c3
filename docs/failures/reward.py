"""Failures of the reward."""

from __future__ import annotations

from failures.failure import Failure

__all__ = ["FAILURES"]

FAILURES = (
    Failure(
        "policy_collapse", "The reward rose, then fell, and stays down",
        "The reward loses most of what it had gained within a few dozen steps and does not come back. The KL often jumps too.",
        ("reward", "kl"),
        {
            "reward_changed": "The reward jumps within a single row, while KL and entropy stay as they were: the reward function "
            "changed, not the policy.",
            "weights_replaced": "The KL falls back towards its start together with the reward: old weights were loaded.",
            "held_out_collapse": "The training reward holds, and only the held-out one falls: the policy overfits.",
        },
        ("noisy_reward",),
    ),
    Failure(
        "reward_hacking", "The reward rises, and other curves break",
        "The reward climbs faster than before, while KL, entropy, length or held-out quality leave their range.",
        ("reward", "kl"),
        {
            "kl_explosion": "The KL runs away, and the reward does not profit from it.",
            "length_bias": "Length alone determines the reward: look at the correlation of length and reward.",
            "reward_saturation": "The reward reaches its ceiling while the other curves stay in their range.",
        },
        ("longer_responses",),
    ),
    Failure(
        "dead_reward", "Every response gets the same reward",
        "The reward and its spread are flat from the start, so no response is better than another. What is left of the gradient "
        "comes from the KL and the value loss.",
        ("reward", "reward_spread"),
        {
            "sparse_reward": "Now and then a response scores higher: the task is too hard, and the reward works.",
            "reward_saturation": "All responses score the same because they are all right.",
            "policy_frozen": "Rewards differ, but the weights do not move.",
        },
        ("reward_spread_falls", "loss_near_zero"), onset=1,
    ),
    Failure(
        "sparse_reward", "Hardly any response ever scores",
        "Nearly every row has the lowest reward there is. Now and then one response succeeds, and that does not become more "
        "frequent.",
        ("reward",),
        {
            "dead_reward": "Not even now and then: the reward is the same number in every row.",
            "uninformative_groups": "The mean reward may look fine, but within a group all responses score the same.",
            "plateau": "Responses do score differently, and the mean goes nowhere.",
        },
        ("noisy_reward",),
        recorded="grpo-old-sparse--s2--reward_constant_mid",
    ),
    Failure(
        "missing_reward", "Responses get no reward at all",
        "The share of responses without a reward jumps: the reward function returns nothing for them, or NaN. The mean of the "
        "others may look as before.",
        ("reward_missing_frac",),
        {
            "vanished_metric": "The reward is no longer logged at all.",
            "nonfinite_metric": "The mean reward itself is NaN: the missing values were not left out.",
            "dead_reward": "There are rewards, but all are the same.",
        },
    ),
    Failure(
        "reward_saturation", "The reward is at its ceiling",
        "The reward is flat at its best value and its spread is gone: nothing is left to learn, and the policy only drifts.",
        ("reward", "reward_spread"),
        {
            "dead_reward": "Flat as well, but not at a good value.",
            "plateau": "Flat, but responses still differ: there is something to learn, and it is not learnt.",
        },
        ("reward_spread_falls",),
    ),
    Failure(
        "plateau", "The reward is where it started",
        "After hundreds of updates the reward shows no trend beyond its noise, although responses score differently.",
        ("reward", "losses"),
        {
            "policy_frozen": "The weights do not move: look at the KL, which stays at zero.",
            "learning_rate_too_low": "The learning rate is zero or has decayed to nothing.",
            "reward_saturation": "Flat at its best value: there is nothing left to gain.",
            "sparse_reward": "Flat because nearly all responses score the lowest reward.",
        },
        ("noisy_reward", "loss_near_zero"), onset=1, steps=600,
    ),
    Failure(
        "reward_changed", "The reward jumps within one row and stays there",
        "From one row to the next the reward has another level, or the opposite sign, while KL, entropy and length go on as "
        "before.",
        ("reward", "kl"),
        {
            "policy_collapse": "The fall takes many rows, and KL, entropy or length move with it.",
            "weights_replaced": "The KL jumps in the same row: the policy is another one.",
        },
        ("noisy_reward",),
        recorded="ppo-free--s1--reward_flipped_mid",
    ),
    Failure(
        "held_out_collapse", "Training looks fine, and held-out quality falls",
        "Accuracy or reward on the same held-out questions loses much of its best, for several measurements.",
        ("accuracy",),
        {
            "policy_collapse": "The reward in training falls as well.",
            "reward_hacking": "The reward in training rises faster while quality falls: the policy exploits the reward.",
            "too_few_prompts": "The policy learns a few prompts by heart: count the different prompts.",
        },
        ("noisy_reward",),
    ),
    Failure(
        "uninformative_groups", "Whole groups fail",
        "In nine of ten groups every response fails, so there is nothing to compare within the group, and that does not change.",
        ("groups_all_bad_frac",),
        {
            "dead_reward": "All groups, in every row: the reward function is broken rather than the task too hard.",
            "sparse_reward": "The same seen in the mean reward, where groups are not logged.",
            "reward_saturation": "Groups have no spread because all responses are right.",
        },
        ("gradient_norm_zero", "reward_spread_falls"),
    ),
)  # fmt: skip
