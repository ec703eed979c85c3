"""The run was started with settings that cannot work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isfinite, nan
from typing import Any, ClassVar

from rldk.core.run_config import RunConfig
from rldk.detectors.base import NOTE, Clause, Detector, Finding, View
from rldk.signals.reward import SCORES

__all__ = ["SettingsUnsound"]

LOST = 0.01  # share of a reward that is left after half of a response
SHRINKS = 1e-3  # of each weight, per optimizer step
EPSILON = 1e-3
TIGHT = 1e-3  # norm of a gradient
SMOOTHED = 0.4
FEW_TOKENS = 0.05
SMALL_SCALE, LARGE_SCALE = 0.05, 16.0  # of an adapter
SOON = 10  # steps
BONUS = 0.1


class SettingsUnsound(Detector):
    """A setting has a value with which training cannot work, whatever the data.

    What it catches: a discount that loses the reward within a response; weight decay that removes a thousandth of each weight per
        step; a warm-up that is longer than the run; an epsilon of Adam or a gradient clip that makes updates vanish; a negative
        weight of a reward function, or rewards clipped to less than their spread; labels that are smoothed to almost nothing;
        hardly any token trained on; an adapter scaled to nothing; a reference that follows the policy; a large entropy bonus.
    Why it matters: such a run fails slowly, in a way that looks like a hard task. The settings show it at the first step.
    When it misfires: a setting may be in the log although the trainer does not use it.
    What to do: set it to the value that recipes use, which the message names.
    References: Kingma and Ba 2015, Adam; the defaults of TRL.
    """

    __slots__ = ()
    type: ClassVar[str] = "settings_unsound"
    family: ClassVar[str] = "run"
    needs: ClassVar = ((*SCORES, "loss", "policy_loss"),)
    panels: ClassVar = ("reward", "lr")
    reads: ClassVar = ("reward_std",)
    special: ClassVar[bool] = True
    of_settings: ClassVar[bool] = True
    advice: ClassVar[str] = "Set it to the value that recipes use."
    persist: ClassVar[int] = 1
    clear: ClassVar[int] = 3
    clauses: ClassVar = {
        "discounted": Clause(
            "less than a hundredth of the reward is left after half of a response", "warning",
            "definition: the discount to the power of half the response; recipes for language models use 1", min_rows=1,
        ),
        "grows": Clause(
            "a reward counts more the earlier its token is", "warning", "definition: a discount is no more than 1", min_rows=1,
        ),
        "weights_shrink": Clause(
            "weight decay removes a thousandth of each weight per step, or more", "warning",
            "definition: learning rate times weight decay; recipes stay below 1e-5", min_rows=1,
        ),
        "never_warm": Clause(
            "the warm-up is at least as long as the run", "warning",
            "definition: the learning rate never reaches the value that was set", min_rows=1,
        ),
        "epsilon_large": Clause(
            "the epsilon of Adam is larger than most gradients", "warning",
            "Adam's default is 1e-8; far above its gradients it divides every update by epsilon", min_rows=1,
        ),
        "gradients_cut": Clause(
            "gradients are clipped to a norm below a thousandth", NOTE,
            "recipes use 0.1 to 1; Adam makes up for it as long as gradients stay above its epsilon", min_rows=1,
        ),
        "few_tokens": Clause(
            "less than a twentieth of the tokens are trained on", "warning",
            "Wang et al. 2025, Beyond the 80/20 Rule: a fifth of the tokens, those of the highest entropy, is enough", min_rows=1,
        ),
        "adapter_scale": Clause(
            "an adapter is scaled by less than a twentieth or more than sixteen", "warning",
            "recipes scale by 0.5 to 4 (`lora_alpha` through the rank); the scale multiplies every update", min_rows=1,
        ),
        "reference_follows": Clause(
            "the reference becomes the policy every few steps", "warning",
            "definition: the KL is that of a few steps, and its penalty has no effect; TRL syncs every 512 steps", min_rows=1,
        ),
        "entropy_bonus": Clause(
            "the coefficient of the entropy bonus is 0.1 or more", "warning", "recipes use 0 to 0.01", min_rows=1,
        ),
        "reward_clipped": Clause(
            "rewards are clipped to a range that is narrower than their spread", "warning",
            "definition: most responses then score the same", min_rows=1,
        ),
        "weightless": Clause(
            "a reward function has the weight 0", NOTE, "definition: it is logged, and nothing is learnt from it", min_rows=1,
        ),
        "reward_weight": Clause(
            "a reward function has a negative weight", "warning", "definition: what it rewards is unlearnt", min_rows=1,
        ),
        "labels_smoothed": Clause(
            "labels are smoothed so far that they hardly say which response is better", "warning",
            "definition: at 0.5 both labels are the same", min_rows=1,
        ),
    }  # fmt: skip

    def find(self, view: View) -> Sequence[Finding]:
        settings = view.context.get("settings")
        if not settings:
            return ()
        known = view.memo.get(SettingsUnsound)
        if known is None or known[0] is not settings:  # they do not change: they are looked at once
            known = view.memo[SettingsUnsound] = (settings, list(_findings(settings, view.setting)))
        found: list[Finding] = known[1]
        return [*found, *_clipped(view, settings.raw.get("reward_clip_range"))]


def _findings(settings: RunConfig, number: Callable[[str], float]) -> Iterator[Finding]:
    def finding(clause: str, knob: str, limit: float, why: str, usual: str) -> Finding:
        value = number(knob)
        message = f"`{settings.key_of(knob)}` is {value:g}: {why}. Recipes use {usual}."
        return Finding("", value, limit, message, {knob: value}, clause=clause)

    length, gamma = number("max_response_length"), number("gamma")
    if 0.0 <= gamma < 1.0 and length > 0.0 and gamma ** (length / 2.0) < LOST:
        why = f"of a reward at the end, {gamma ** (length / 2.0):.2g} is left after half of {length:.0f} tokens"
        yield finding("discounted", "gamma", LOST, why, "1")
    if gamma > 1.0:
        yield finding("grows", "gamma", 1.0, "the first tokens of a response are credited with more than its reward", "1")
    if number("learning_rate") * number("weight_decay") >= SHRINKS:
        share = number("learning_rate") * number("weight_decay")
        yield finding("weights_shrink", "weight_decay", SHRINKS, f"each step removes {share:.2g} of every weight", "0 to 0.1")
    steps, warm_up = number("max_steps"), number("warmup_steps")
    of_rollout = "num_steps" in settings.raw and "total_timesteps" in settings.raw  # control tasks: the steps of one rollout
    if 0.0 < steps <= warm_up and not of_rollout:
        yield finding("never_warm", "warmup_steps", steps, f"the run has {steps:.0f} steps", "a tenth of the steps or fewer")
    elif number("warmup_ratio") >= 1.0:
        yield finding("never_warm", "warmup_ratio", 1.0, "the learning rate rises until the end", "0.1 or less")
    if number("adam_epsilon") >= EPSILON:
        yield finding("epsilon_large", "adam_epsilon", EPSILON, "gradients below it make almost no update", "1e-8")
    if 0.0 < number("max_grad_norm") < TIGHT:
        yield finding("gradients_cut", "max_grad_norm", TIGHT, "hardly anything of a gradient is left", "0.1 to 1")
    if SMOOTHED <= number("label_smoothing") <= 1.0:
        why = "the labels hardly say which response is better"
        yield finding("labels_smoothed", "label_smoothing", SMOOTHED, why, "0 to 0.1")
    if 0.0 <= number("token_entropy_share") < FEW_TOKENS:
        yield finding("few_tokens", "token_entropy_share", FEW_TOKENS, "the other tokens are not trained on", "0.2 to 1")
    rank = number("lora_rank")
    scale = number("lora_alpha") / rank if rank > 0.0 else nan  # a rank of 0 is no adapter
    if 0.0 <= scale < SMALL_SCALE or scale > LARGE_SCALE:
        why = f"at a rank of {rank:g} the adapter is scaled by {scale:.2g}"
        yield finding("adapter_scale", "lora_alpha", rank, why, "half to four times the rank")
    if number("syncs_reference") == 1.0 and number("reference_sync_steps") <= SOON and not number("reference_mixup") < 0.5:
        why = "the reference becomes the policy, so that the KL penalty has no effect"
        yield finding("reference_follows", "reference_sync_steps", SOON, why, "hundreds of steps")
    if number("entropy_coef") >= BONUS and length > 0.0:  # control tasks use more
        yield finding("entropy_bonus", "entropy_coef", BONUS, "random tokens are rewarded", "0 to 0.01")
    weights = _numbers(settings.raw.get("reward_weights"))
    if 0.0 in weights and any(weights):
        message = "A reward function has the weight 0: nothing is learnt from it."
        yield Finding("", 0.0, 0.0, message, clause="weightless")
    if weights and (lowest := min(weights)) < 0.0:
        message = f"A reward function has the weight {lowest:g}: the policy unlearns what it rewards. Recipes use 0 or more."
        yield Finding("", lowest, 0.0, message, {"reward_weight": lowest}, clause="reward_weight")


def _clipped(view: View, given: Any) -> Sequence[Finding]:
    """Whether the range to which rewards are clipped is narrower than their spread."""
    limits, spread = _numbers(given), view.get("reward_std")
    if len(limits) != 2 or spread.n < 3 or not limits[1] - limits[0] < 0.5 * spread.level:
        return ()
    width = limits[1] - limits[0]
    message = f"Rewards are clipped to a range of {width:.2g}, and their spread is {spread.level:.2g}: most score the same."
    return (Finding("", width, 0.5 * spread.level, message, {"spread": spread.level}, clause="reward_clipped"),)


def _numbers(given: Any) -> list[float]:
    """The numbers of a list, such as the weights of the reward functions."""
    listed = given if isinstance(given, (list, tuple)) else ()
    return [float(one) for one in listed if isinstance(one, (int, float)) and isfinite(one)]
