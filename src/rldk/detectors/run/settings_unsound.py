"""The run was started with settings that cannot work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isfinite
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


class SettingsUnsound(Detector):
    """A setting has a value with which training cannot work, whatever the data.

    What it catches: a discount that loses the reward within a response; weight decay that removes a thousandth of each weight per
        step; a warm-up that is longer than the run; an epsilon of Adam or a gradient clip that makes updates vanish; a negative
        weight of a reward function; labels that are smoothed to almost nothing.
    Why it matters: such a run fails slowly, in a way that looks like a hard task. The settings say it at the first step.
    When it misfires: a setting may be written down and not used by the trainer.
    What to do: set it to the value that recipes use, which the message names.
    References: Kingma and Ba 2015, Adam; the defaults of TRL.
    """

    __slots__ = ()
    type: ClassVar[str] = "settings_unsound"
    family: ClassVar[str] = "run"
    needs: ClassVar = ((*SCORES, "loss", "policy_loss"),)
    panels: ClassVar = ("reward", "lr")
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
        return found


def _findings(settings: RunConfig, number: Callable[[str], float]) -> Iterator[Finding]:
    def finding(clause: str, knob: str, limit: float, why: str, usual: str) -> Finding:
        value = number(knob)
        message = f"`{settings.key_of(knob)}` is {value:g}: {why}. Recipes use {usual}."
        return Finding("", value, limit, message, {knob: value}, clause=clause)

    length, gamma = number("max_response_length"), number("gamma")
    if 0.0 <= gamma < 1.0 and gamma ** (length / 2.0) < LOST:
        why = f"of a reward at the end, {gamma ** (length / 2.0):.2g} is left after half of {length:.0f} tokens"
        yield finding("discounted", "gamma", LOST, why, "1")
    if number("learning_rate") * number("weight_decay") >= SHRINKS:
        share = number("learning_rate") * number("weight_decay")
        yield finding("weights_shrink", "weight_decay", SHRINKS, f"each step removes {share:.2g} of every weight", "0 to 0.1")
    steps, warm_up = number("max_steps"), number("warmup_steps")
    if 0.0 < steps <= warm_up:
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
    if negative := [weight for weight in _weights(settings.raw.get("reward_weights")) if weight < 0.0]:
        message = f"A reward function has the weight {negative[0]:g}: the policy unlearns what it rewards. Recipes use 0 or more."
        yield Finding("", negative[0], 0.0, message, {"reward_weight": negative[0]}, clause="reward_weight")


def _weights(given: Any) -> list[float]:
    """The weights of the reward functions, where they are numbers."""
    listed = given if isinstance(given, (list, tuple)) else ()
    return [float(one) for one in listed if isinstance(one, (int, float)) and isfinite(one)]
