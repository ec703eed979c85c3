"""What looks odd in a log but is normal, with the reason; printed by `rldk explain normal`."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NORMAL", "Oddity"]


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something that looks wrong at first: what is seen, why it is normal, and when it is not."""

    name: str
    seen: str
    why: str
    unless: str


NORMAL: tuple[Oddity, ...] = (
    Oddity(
        "loss_near_zero",
        "The policy loss begins at 0, stays near 0, or rises.",
        "Advantages of a group have mean 0, and before the first update the ratio of new to old probability is 1: the "
        "loss is the mean advantage, which is 0 (GRPO, RLOO, whitened PPO). Only its gradient matters. With a KL term in the "
        "loss it rises as the policy leaves its reference. Look at the reward instead.",
        "loss_explosion, where it jumps by orders of magnitude; policy_frozen, where the gradient is 0 as well.",
    ),
    Oddity(
        "negative_kl",
        "The KL to the reference is a little below 0 in some rows.",
        "The k1 estimate is the mean of log-probability differences over sampled tokens. Its expected value is the KL, but "
        "the mean of a batch may fall below 0. The k3 estimate cannot.",
        "negative_kl, where it stays below 0 by more than 0.05 nats per token: then sampler and trainer differ.",
    ),
    Oddity(
        "gradient_norm_zero",
        "The gradient norm is exactly 0 in some rows.",
        "Where all responses of every group get the same reward, all advantages are 0 and so is the gradient. Some trainers "
        "also log the norm of the last micro-batch only.",
        "policy_frozen, where it is 0 in every row while rewards differ; dead_reward, where no group has a spread.",
    ),
    Oddity(
        "no_update_kl",
        "The KL of an update and the clip fraction are 0 in every row.",
        "With one update per batch the updated policy is the one that sampled, so the ratio is 1 when it is measured.",
        "policy_frozen, where the weights do not change, or the KL to the reference stays 0.",
    ),
    Oddity(
        "first_kl_not_zero",
        "The KL to the reference is not 0 in the first row.",
        "The row may stand for several updates; dropout may be active; the reference may be another checkpoint on purpose; "
        "precision differs between sampler and trainer.",
        "reference_wrong notes it where it is large; kl_explosion, where it is beyond what any healthy run reaches.",
    ),
    Oddity(
        "kl_zero_without_penalty",
        "The KL is 0 in every row, with a KL coefficient of 0.",
        "Without a penalty many trainers load no reference and log a 0 that nobody measured.",
        "kl_penalty_off notes the coefficient; watch held-out quality instead of the KL.",
    ),
    Oddity(
        "entropy_falls",
        "The entropy falls to a tenth of its start or lower.",
        "Learning means preferring some answers. Models of public runs end at 0.006 to 2 nats per token; the lowest of them "
        "started below 0.3.",
        "entropy_collapse, where it is nearly zero, or where the reward has not improved.",
    ),
    Oddity(
        "negative_entropy",
        "The entropy is below 0.",
        "It is the differential entropy of continuous actions (control tasks), which has no lower bound.",
        "entropy_collapse does not judge it.",
    ),
    Oddity(
        "reward_spread_falls",
        "`reward_std` and the gradient norm fall, and more and more groups have no spread.",
        "In a solved task nearly all responses score the same: mistakes are rare.",
        "dead_reward, where the reward is not good; reward_saturation says when the ceiling is reached.",
    ),
    Oddity(
        "shorter_responses",
        "Responses become shorter.",
        "A length penalty, or a task with short answers, is a good reason for it. length_collapse reports it as a note while "
        "the reward rises and nothing else is out of range.",
        "length_collapse, where the reward falls or another channel is damaged.",
    ),
    Oddity(
        "longer_responses",
        "Responses grow several times over.",
        "Models that learn to reason write more. length_runaway reports it as a note while the reward rises and responses end.",
        "length_runaway and eos_starvation, where responses stop ending or the reward does not improve.",
    ),
    Oddity(
        "all_truncated",
        "Every response reaches the length limit from the first row.",
        "Base models seldom stop, and tasks with a fixed length fill it. Training may still work.",
        "eos_starvation warns of it, and is critical where the reward shows no rise, or where responses once ended.",
    ),
    Oddity(
        "noisy_reward",
        "The reward jumps from row to row, and dips for a while.",
        "Prompts differ, batches are small, and 0/1 rewards of eight responses have a spread of 0.18 by chance. A dip that "
        "recovers is not a collapse.",
        "policy_collapse, where the gain is lost beyond the noise and stays lost.",
    ),
    Oddity(
        "explained_variance_negative",
        "The explained variance of the value function is below 0 at the start.",
        "A new value head predicts worse than a constant until it has learnt the scale of the returns.",
        "value_unexplained, where it is still 0 or less after 150 rows.",
    ),
    Oddity(
        "dpo_chosen_falls",
        "In DPO the log-probability of chosen answers falls a little, along with that of rejected ones.",
        "The loss rewards only the margin; both may fall while it grows.",
        "preference_unlearnt, where it falls by half of its size or more.",
    ),
)
"""All of them, in the order in which people encounter them."""
