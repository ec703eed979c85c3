"""The reward function was changed while the policy stayed the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.core.text import listed
from rldk.detectors.base import NOTE, Clause, Detector, Finding, View
from rldk.signals.reward import CHANNELS, SCORES, score_of

__all__ = ["RewardChanged"]

SHRUNK = 0.2  # share of its spread that is left
ALIKE = 1.3  # most by which the factors of level and spread may differ where the reward was given another scale
OUTWEIGHED = 3.0  # times the spread between rewards
RESTORED = 0.7  # share of a jump down by which a jump back must rise


class RewardChanged(Detector):
    """The reward jumped from one row to the next while the policy stayed as it was.

    What it catches: a reward that differs from the previous rows by six times its noise and stays there, while KL, entropy and
        length do not change. A jump to minus the previous value means that the sign was flipped.
    Why it matters: the policy is now trained towards something else. With a flipped sign it unlearns what it has learnt.
    When it misfires: an offset or a new scale is harmless for methods that compare responses with each other, so it is a
        note, unless little of the reward is left beside the KL penalty. A jump down that no offset explains is a
        warning, and critical if it lasts for forty updates; it has recovered when the reward jumps back. If neither KL,
        entropy nor length is logged, a jump counts as a fall of the policy.
    What to do: look for what changed at that step: the reward function, its weights, its normalisation, the reward model
        or its server, the prompts, the chat template. If the sign is wrong, go back to the previous checkpoint.
    References: none.
    """

    __slots__ = ("_drop",)
    type: ClassVar[str] = "reward_changed"
    family: ClassVar[str] = "reward"
    needs: ClassVar = (SCORES, CHANNELS)
    panels: ClassVar = ("reward", "reward_spread")
    watches: ClassVar = SCORES
    reads: ClassVar = ("reward_std", "advantage_std", "kl_penalty_reward")
    advice: ClassVar[str] = (
        "Look for what changed at that step (reward function, its weights or normalisation, reward model, prompts, chat "
        "template); if the sign is wrong, go back to the previous checkpoint."
    )
    clear: ClassVar[int] = 1 << 30  # it is over where the reward jumps back
    clauses: ClassVar = {
        "flipped": Clause(
            "the reward jumped to minus its value while the policy stayed", "critical",
            "definition: a change of sign maps every reward to minus itself",
        ),
        "drowned": Clause(
            "the reward shrank within one row, and so did the advantages, or the KL penalty now outweighs it", "critical",
            "cause and effect: what is left of the reward no longer decides the update; corpus: harmless where advantages "
            "are normalised, failing elsewhere", persist=8, min_rows=3,
        ),
        "worse": Clause(
            "the reward jumped down and its spread changed, while the policy stayed", "warning",
            "an offset does not change the spread between responses", persist=1, min_rows=1,
        ),
        "undone": Clause(
            "the reward jumped down, which no offset explains, while the policy stayed", "warning",
            "an offset would lead anywhere, and a share out of its range; a level between the start and the best, or within "
            "three spreads of a batch, is what a lost skill or a grader that fails has; dips of healthy runs are over after a "
            "dozen rows",
            persist=15, min_rows=4,
        ),
        "not_restored": Clause(
            "the reward jumped down, which no offset explains, and has stayed there for forty updates", "critical",
            "as `undone`: whatever failed is not repaired by training on; no sound run of the corpus", persist=40, min_rows=10,
        ),
        "scaled": Clause(
            "the reward and its spread changed by the same factor while the policy stayed", NOTE,
            "definition: a scale does not change which response is better; `drowned` tells where too little is left",
            persist=1, min_rows=1,
        ),
        "shifted": Clause(
            "the reward jumped while the policy stayed", NOTE,
            "definition: an offset does not change the differences between responses",
        ),
    }  # fmt: skip

    _drop: float  # the jump for which it was raised, or may be

    def reset(self) -> None:
        super().reset()
        self._drop = 0.0

    def find(self, view: View) -> Sequence[Finding]:
        reward = view.reward
        if reward.jump_index < 0:
            return ()
        found = Finding("", reward.jump, 0.0, *self._said(view, score_of(view).level))
        if found.clause != "shifted":
            self._drop = reward.jump
        elif self.raised and reward.jump > -RESTORED * self._drop > 0.0:
            self._good = self.calm
            return ()
        if found.clause == "shifted" and self.raised and reward.jump_index <= self._since:
            return ()  # the jump for which it was raised, of which the policy has made up a part
        if found.clause == "undone":
            found.persist = min(max(15.0, 0.1 * view.index * view.steps_per_row), 30.0)  # dips of long runs are longer
            return (found, Finding("", reward.jump, 0.0, found.message, found.evidence, clause="not_restored"))
        if found.clause in ("worse", "scaled") and reward.respread < SHRUNK and _is_drowned(view):
            message = f"{found.message[:-1]}. Little of it is left beside the KL penalty."
            return (found, Finding("", reward.jump, 0.0, message, found.evidence, clause="drowned"))
        return (found,)

    @staticmethod
    def _said(view: View, level: float) -> tuple[str, dict[str, float], bool, str]:
        """The finding for the kind of jump: flipped sign, changed spread or offset."""
        reward = view.reward
        evidence = {"jump": reward.jump, "respread": reward.respread}
        known = [words for name, words in zip(CHANNELS, ("KL", "entropy", "length"), strict=True) if view.get(name).n]
        stayed, at = f"while {listed(known)} stayed", f"at step {reward.jump_step}"
        if reward.flipped >= 0:
            jumped = f"The reward jumped to minus its value {at}"
            return f"{jumped}, {stayed}: its sign was flipped.", evidence, False, "flipped"
        if reward.jump < 0.0 and not 0.6 < reward.respread < 1.6:
            spread = "fell to 0" if reward.respread < 0.005 else f"changed {reward.respread:.2g}-fold"
            fell = f"The reward fell by {-reward.jump:.3g} {at} and its spread {spread}"
            if reward.respread > 0.0 and 1.0 / ALIKE < reward.relevel / reward.respread < ALIKE:
                return f"{fell}, as it would with another scale, {stayed}.", evidence, False, "scaled"
            return f"{fell}, {stayed}: the reward or the prompts changed, not the policy.", evidence, False, "worse"
        if level < reward.undone:
            where = "below its start" if level < reward.start - reward.jump else "back towards its start"
            fell = f"The reward fell by {-reward.jump:.3g} {at}, {where}"
            return f"{fell}, {stayed}: the reward or the prompts changed, not the policy.", evidence, False, "undone"
        moved = f"The reward jumped by {reward.jump:.3g} {at}"
        return f"{moved}, {stayed}: the reward changed, not the policy.", evidence, False, "shifted"


def _is_drowned(view: View) -> bool:
    """Whether the reward no longer decides the update."""
    advantages, penalty, spread = view.get("advantage_std"), view.get("kl_penalty_reward"), view.get("reward_std")
    outweighed = abs(penalty.level) > OUTWEIGHED * (spread.level if spread.n else abs(score_of(view).level))
    return outweighed or (advantages.ready and advantages.level < 0.5 * advantages.start)
