"""Much of the update is clipped away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View
from rldk.signals.channels import CHANNEL_METRICS, ON_POLICY, is_on_policy, works
from rldk.signals.optimizer import RATES, with_rate
from rldk.signals.reward import SCORES

__all__ = ["ClipSaturation"]


NARROW, WIDE = 0.01, 5.0  # clip ranges that leave no room, and that clip nothing; recipes use 0.1 to 0.4
NO_ROOM = 0.005
ANY = 0.01  # share of clipped tokens that is more than rounding
MANY = 0.5  # share of clipped tokens that is a defect whatever the reward does: most of the batch is wasted


class ClipSaturation(Detector):
    """A large share of the tokens is clipped, or the clip range leaves no room.

    What it catches: a third or more of the tokens hit the clip range over many updates, or any do although each batch is used
        once. Up to a half is a note while the reward is near its best and nothing is damaged. A clip range below 0.01 or above 5
        is a note; one below 0.005 is a warning if each batch is used several times.
    Why it matters: a clipped token has no gradient, so the update comes from the remaining ones. Either the ratio between old
        and new policy has left the region in which PPO's estimate holds, or the range is too tight for any step.
    When it misfires: off-policy methods with many epochs on one batch normally clip a fifth to a quarter of the tokens.
    What to do: lower the learning rate, use fewer epochs or minibatches per batch, or widen the clip range if it is very
        tight.
    References: Schulman et al. 2017, Proximal Policy Optimization Algorithms.
    """

    __slots__ = ("share",)
    type: ClassVar[str] = "clip_saturation"
    family: ClassVar[str] = "policy"
    needs: ClassVar = (("clip_frac", "clip_range"),)
    panels: ClassVar = ("clip", "kl_update")
    reads: ClassVar = (*RATES, *ON_POLICY, *SCORES, *CHANNEL_METRICS)
    advice: ClassVar[str] = "Lower the learning rate, use fewer epochs per batch, or widen the clip range if it is very tight."
    clauses: ClassVar = {
        "saturated": Clause(
            "a third of the tokens are clipped", "warning",
            "ranges of real runs: healthy ones clip up to 25 %, failing ones up to 97 %", persist=8, min_rows=3,
        ),
        "narrow": Clause(
            "the clip range is below 0.01", NOTE, "recipes use 0.1 to 0.4 per token; GSPO clips whole responses at 3e-4",
            persist=1, min_rows=1,
        ),
        "no_room": Clause(
            "the clip range is below 0.005 per token, and each batch is used several times", "warning",
            "after the first small step a token has no gradient any more; recipes use 0.1 to 0.4", persist=3, min_rows=1,
        ),
        "on_policy": Clause(
            "tokens are clipped although each batch is used once, so that the ratio should be 1", "warning",
            "definition: the ratio of a policy to itself is 1; then old log-probabilities are of another policy",
            persist=5, min_rows=2,
        ),
        "wide": Clause("the clip range is above 5", NOTE, "even a ratio of 6 is not clipped: PPO without a clip",
        persist=1, min_rows=1),
    }  # fmt: skip
    settings: ClassVar = {"share": Setting(0.35, "share of clipped tokens", min=0.0, max=1.0)}
    share: float

    def find(self, view: View) -> Sequence[Finding]:
        clip, limit = view.get("clip_frac"), view.get("clip_range").last
        found = []
        if clip.ready and clip.level >= self.share:
            message = f"{clip.level:.0%} of the tokens are clipped."
            severity = NOTE if clip.level < MANY and works(view) else ""
            found.append(Finding(severity, clip.level, self.share, message, {"clip_frac": clip.level}, clause="saturated"))
        if clip.ready and clip.level > ANY and is_on_policy(view):
            message = f"{clip.level:.1%} of the tokens are clipped in the only update of a batch, where the ratio should be 1."
            found.append(Finding("", clip.level, ANY, message, {"clip_frac": clip.level}, clause="on_policy"))
        if 0.0 < limit < NARROW:
            message = f"The clip range is {limit:.3g}: it leaves no room to learn."
            found.append(Finding("", limit, NARROW, message, clause="narrow"))
            passes = view.get("num_iterations").last
            if limit < NO_ROOM and passes > 1.0 and not _of_responses(view):
                text = f"The clip range is {limit:.3g} and each batch is used {passes:.0f} times: only the first time counts."
                found.append(Finding("", limit, NO_ROOM, text, {"num_iterations": passes}, clause="no_room"))
        elif limit > WIDE:
            found.append(Finding("", limit, WIDE, f"The clip range is {limit:.3g}: nothing is clipped.", clause="wide"))
        return found

    def advice_for(self, view: View, finding: Finding) -> str:
        if finding.clause in ("narrow", "no_room"):
            return "Set the clip range (`cliprange`, `epsilon`) to 0.1 to 0.3."
        if finding.clause == "on_policy":
            return "Check where the old log-probabilities come from: the policy that sampled the batch, and not the reference."
        return with_rate(self.advice, view)


def _of_responses(view: View) -> bool:
    """Whether the ratio is that of a whole response, for which a range of 3e-4 is usual."""
    settings = view.context.get("settings")
    return settings is not None and settings.raw.get("importance_sampling_level") == "sequence"
