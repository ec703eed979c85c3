"""Each batch is used for too many passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.core.text import listed
from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View
from rldk.detectors.run.learning_rate_too_high import LARGE_UPDATE, MANY_PASSES
from rldk.signals.channels import CHANNEL_METRICS, harm, works
from rldk.signals.reward import SCORES

__all__ = ["BatchOverused"]


class BatchOverused(Detector):
    """Each batch of responses is trained on so often that the policy leaves the one that wrote them.

    What it catches: ten or more passes over each batch, with updates that move the policy by more than 0.12 nats per token. It is
        critical once the reward, the entropy, the KL or the length is damaged too. Where the log does not say how far an update
        moves a language model, ten passes alone are a warning.
    Why it matters: after the first passes the responses no longer come from the policy that is trained. The clipped ratio
        then says little, and each update fits the noise of one batch.
    When it misfires: control tasks use ten passes with small steps; there an update stays far below the limit. Large updates are
        only a note while the reward thrives and nothing is damaged.
    What to do: use one to four passes per batch, or end them when the KL of an update reaches a target.
    References: Huang et al. 2022, The 37 Implementation Details of Proximal Policy Optimization (early stopping by KL).
    """

    __slots__ = ("update_limit",)
    type: ClassVar[str] = "batch_overused"
    family: ClassVar[str] = "policy"
    needs: ClassVar = (("num_iterations",),)
    panels: ClassVar = ("kl_update", "clip", "reward")
    watches: ClassVar = ("kl_update", "num_iterations")
    reads: ClassVar = (*SCORES, *CHANNEL_METRICS, "max_response_length")
    special: ClassVar[bool] = True
    advice: ClassVar[str] = "Use one to four passes per batch, and set a target for the KL of an update at which they end."
    clear: ClassVar[int] = 10
    clauses: ClassVar = {
        "overused_with_damage": Clause(
            "each batch is used ten times or more, updates are far too large, and another channel left its range", "critical",
            "corroboration by an independent channel", persist=3, min_rows=2,
        ),
        "overused": Clause(
            "each batch is used ten times or more, and updates move the policy by more than 0.12 nats per token", "warning",
            "recipes for language models use one to four passes; the limit of an update is that of `learning_rate_too_high`",
            persist=8, min_rows=2,
        ),
        "many_passes": Clause(
            "a language model is trained ten times or more on each batch", "warning",
            "recipes for language models use one to four passes", persist=3, min_rows=1,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "update_limit": Setting(LARGE_UPDATE, "KL of an update that is far too large, in nats per token", min=0.0),
    }
    update_limit: float

    def find(self, view: View) -> Sequence[Finding]:
        update, passes = view.get("kl_update"), view.get("num_iterations").last
        if not passes >= MANY_PASSES:
            return ()
        if not update.n and view.get("max_response_length").n:
            message = f"Each batch is used {passes:.0f} times; the log does not say how far an update moves the policy."
            return (Finding("", passes, MANY_PASSES, message, {"num_iterations": passes}, clause="many_passes"),)
        if update.n < 3 or not update.level > self.update_limit:
            return ()
        message = f"Each batch is used {passes:.0f} times, and updates move the policy by {update.level:.3g} nats per token"
        evidence = {"num_iterations": passes, "kl_update": update.level}
        severity = NOTE if works(view) else ""
        found = [Finding(severity, update.level, self.update_limit, f"{message}.", evidence, clause="overused")]
        if damaged := harm(view):
            text = f"{message}; {listed(damaged)}."
            found.append(Finding("", update.level, self.update_limit, text, evidence, clause="overused_with_damage"))
        return found
