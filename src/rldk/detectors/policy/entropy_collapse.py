"""The policy has collapsed onto one answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.channels import CHANNEL_METRICS, VARIETY, is_alone, writes_text
from rldk.signals.reward import SCORES, score_of

__all__ = ["EntropyCollapse"]

DEAD = 1e-4  # nats per token: the next token has a probability of 0.9999 or more
BEGUN = 1e-3  # nats per token at the start below which there is nothing to lose
LOW = 0.3  # nats per token: healthy runs that ended below 0.02 started below this
ONE_TEXT, MANY_TEXTS = 0.1, 4.0  # nats per response


class EntropyCollapse(Detector):
    """The policy's entropy is nearly zero: it writes one text.

    What it catches: an entropy per token below 0.02 nats that has lost nine tenths of its start; one that is zero to four
        digits; one that has lost nine tenths while the reward is not at its best; and an entropy of a whole response below
        0.1 nats, whatever the reward does.
    Why it matters: without entropy the policy does not explore, and no gradient leads out of a policy that writes one text.
    When it misfires: entropy falls in most runs that learn. Models of public runs end as low as 0.006 nats, but started
        below 0.3; with a reward near its best and no other channel out of range a low entropy is a warning, not critical. A
        low entropy from the start is a property of the model. In supervised training (token accuracy and no reward) the
        entropy falls because the model learns, so it is not judged. Neither is the entropy of continuous actions, which may
        be negative.
    What to do: lower the learning rate, raise the entropy bonus or the sampling temperature, raise the KL penalty, and go
        back to a checkpoint from before the fall.
    References: Cui et al. 2025, The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models.
    """

    __slots__ = ("floor", "share")
    type: ClassVar[str] = "entropy_collapse"
    family: ClassVar[str] = "policy"
    needs: ClassVar = (("entropy_mean", "entropy_sequence"),)
    panels: ClassVar = ("entropy", "reward")
    reads: ClassVar = (*SCORES, "token_accuracy", *CHANNEL_METRICS)
    advice: ClassVar[str] = (
        "Go back to before the fall; lower the learning rate, raise the entropy bonus, the temperature or the KL penalty."
    )
    clear: ClassVar[int] = 8
    clauses: ClassVar = {
        "dead": Clause(
            "the entropy is zero", "critical",
            "definition: the most likely text is the only one; collapsed public runs are below 1e-10",
            persist=5, min_rows=2,
        ),
        "one_text": Clause(
            "the entropy of a whole response is below 0.1 nats", "critical",
            "definition: of a hundred responses to a prompt 98 are then the same; of the recorded runs that began above 4 nats "
            "22 failing ones got there, and no sound one below 0.19", persist=5, min_rows=2,
        ),
        "gone": Clause(
            "the entropy fell below 0.02 nats and a tenth of its start", "critical",
            "public and own runs: 7 failing runs and no healthy run fell from above 0.3 to below 0.02", persist=5, min_rows=2,
        ),
        "fallen": Clause(
            "the entropy lost nine tenths of its start, and the reward is not at its best", "warning",
            "corpus: 97 sound runs keep a fifth of their entropy or more", persist=20, min_rows=5,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "share": Setting(0.1, "share of its start below which the entropy counts as gone", min=0.0, max=1.0),
        "floor": Setting(0.02, "nats per token below which it is critical", min=0.0),
    }
    share: float
    floor: float

    def find(self, view: View) -> Sequence[Finding]:
        score = score_of(view)
        if not score.n and view.get("token_accuracy").n:
            return ()  # supervised training
        return [*self._of_tokens(view), *_of_one_text(view)]

    def _of_tokens(self, view: View) -> list[Finding]:
        entropy = view.get("entropy_mean")
        level = entropy.level
        start = max(entropy.first, entropy.start) if entropy.ready else entropy.first
        if entropy.n < 3 or not level < self.share * start or not start > BEGUN or entropy.low < 0.0:
            return []
        message = f"Entropy fell from {start:.3g} to {level:.2g} nats per token."
        evidence = {"entropy_start": start, "entropy": level}
        thrives = _thrives(view)
        excused = thrives and is_alone(view, *VARIETY)
        found = []
        if level < DEAD:
            found.append(Finding("warning" if excused else "", level, DEAD, message, evidence, clause="dead"))
        if level < self.floor:
            mild = excused or start < LOW
            found.append(Finding("warning" if mild else "", level, self.floor, message, evidence, clause="gone"))
        if not thrives:
            found.append(Finding("", level, self.share * start, message, evidence, clause="fallen"))
        return found


def _thrives(view: View) -> bool:
    """Whether the task is solved, or the reward rises."""
    score = score_of(view)
    return view.reward.is_solved(score) or view.reward.improves(score)


def _of_one_text(view: View) -> list[Finding]:
    """Whether nearly all responses to a prompt are the same, whatever the reward does."""
    whole = view.get("entropy_sequence")
    if whole.n:
        now, began = whole.level, whole.start
    else:
        entropy, length = view.get("entropy_mean"), view.get("rollout_length_mean")
        now, began = entropy.level * length.level, entropy.start * length.start
    if not 0.0 <= now < ONE_TEXT or not began > MANY_TEXTS:
        return []
    solved = view.reward.is_solved(score_of(view))
    right = solved or (_thrives(view) and not writes_text(view))  # one course of actions may be the best
    text = f"The entropy of a whole response fell from {began:.3g} to {now:.2g} nats: nearly all are the same text."
    evidence = {"entropy_start": began, "entropy": now}
    return [Finding("warning" if right else "", now, ONE_TEXT, text, evidence, clause="one_text")]
