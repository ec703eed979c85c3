"""The reward rises for the wrong reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import sqrt
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.channels import CHANNEL_METRICS, Sign, damage
from rldk.signals.held_out import HELD_OUT, held_out_fall
from rldk.signals.reward import COMPONENT
from rldk.signals.series import EARLY, Series

__all__ = ["RewardHacking"]

CORRECT = re.compile(r"correct|accura|answer|solved|exact|gold|pass", re.IGNORECASE)
NO_QUALITY = re.compile(r"penal|length|token|turn|call|step|time|count|num|cost|(^|_)kl(_|$)", re.IGNORECASE)
"""Parts of a reward that are no measure of quality: a good policy may lower them."""
NONE_RIGHT, FEW_RIGHT, LATE = 0.1, 0.2, 100
"""The level of correctness below which the answers count as not learnt: at any row, and from row 100 on. Healthy runs learn the
format first: of 26 in the corpus, four had no more right answers after 40 rows than at their start, a share of 0.23 to 0.4."""
SUNK = 0.4  # share that a part of another name must have lost
SURELY = 1.3  # noises of a row: four standard errors of a mean of twenty rows beside a median of twenty
FALLEN = 0.25  # share of the right answers that must be lost
LEFT = 0.25  # share of the right answers that is left where they count as lost
COUNTED = ("exploited_frac", "eval_exploited_frac")
SOME, MANY = 0.1, 0.3  # share of the responses that are counted as exploits, and half or more of it new
SLIPPED, LONG = 0.25, 0.15  # share of its range that a held-out quality has lost, and of the run since its best


class RewardHacking(Detector):
    """The reward rises while independent channels break.

    What it catches: a reward well above its start and near its best, together with independent channels that have left
        their range: responses stop ending, the entropy is gone or explodes, the KL from the reference is beyond what healthy
        runs reach, responses grow several times over, held-out quality falls. One strong sign is a warning. Two signs, or a
        fall of held-out quality that lasts or comes with another sign, are critical. The message says evidence, because
        only reading samples can prove it. Also a part of the reward that sinks while the whole rises, and exploits that the log
        itself counts, whatever the reward does.
    Why it matters: the run looks best exactly when the model is getting worse.
    When it misfires: a reward that rises alone is learning and does not count. Training that overfits to its prompts looks
        much the same, and the advice is the same.
    What to do: read samples. Raise the KL penalty, go back to the last checkpoint with good held-out quality, fix what the
        reward misses, or add a second reward.
    References: Gao et al. 2023; Skalse et al. 2022, Defining and Characterizing Reward Hacking.
    """

    __slots__ = ("gain",)
    type: ClassVar[str] = "reward_hacking"
    family: ClassVar[str] = "reward"
    needs: ClassVar = (
        ("reward_mean",),
        ("kl_mean", "rollout_length_mean", "entropy_mean", "truncated_frac", "eos_frac", "eos_count", "reward_std",
         "accuracy", "eval_perplexity", *HELD_OUT, "eval_distinct_2", *COUNTED),
    )  # fmt: skip
    panels: ClassVar = ("reward", "reward_spread", "kl", "length")
    watches: ClassVar = ("reward_mean", "eval_perplexity", "eval_distinct_2", *HELD_OUT, *COUNTED)
    reads: ClassVar = (*CHANNEL_METRICS, *HELD_OUT, "eval_distinct_2", "accuracy", *COUNTED)
    advice: ClassVar[str] = (
        "Read samples; raise the KL penalty, go back to the last checkpoint with good held-out quality, and fix the reward."
    )
    clear: ClassVar[int] = 10
    clauses: ClassVar = {
        "several_channels": Clause(
            "the reward rises while two channels have left their range", "critical",
            "definition of reward hacking: a proxy rises while what it stands for falls; two independent channels",
            persist=5, min_rows=2,
        ),
        "held_out": Clause(
            "the reward rises while held-out quality falls and another channel has moved", "critical",
            "Gao et al. 2023: the true score falls while the proxy keeps rising", persist=2, min_rows=2,
        ),
        "held_out_alone": Clause(
            "the reward rises while held-out quality falls, over many steps", "critical",
            "as `held_out`: held-out data is what the reward stands for", persist=12, min_rows=5,
        ),
        "held_out_slips": Clause(
            "the reward is at its best while held-out quality has been falling for long", "warning",
            "Gao et al. 2023: the true score peaks and falls while the proxy keeps rising; a quarter of its range, and six times "
            "its noise, are no chance", persist=10, min_rows=4,
        ),
        "hollow": Clause(
            "the reward rises while the accuracy or its component does not, and is below 0.1, or 0.2 after 100 rows", "warning",
            "open-r1 issue 255: the format is learnt and the answers are not; healthy runs that learn the format first have 0.23 "
            "or more", persist=10, min_rows=5,
        ),
        "answers_worse": Clause(
            "the reward rises while the accuracy, or the component that stands for it, falls", "warning",
            "definition: what the reward stands for falls while the reward rises; a quarter of it, and four standard errors of a "
            "mean of twenty rows beside a median of twenty", persist=10, min_rows=5,
        ),
        "answers_lost": Clause(
            "the reward rises while three quarters of the accuracy, or of the component that stands for it, are lost", "critical",
            "as `answers_worse`; what is left is less than a third of what was lost", persist=20, min_rows=8,
        ),
        "counted_often": Clause(
            "the log counts three responses of ten or more as exploiting the reward, most of them new", "critical",
            "definition: the log's own count; three of ten is a judgement", persist=5, min_rows=2,
        ),
        "counted": Clause(
            "the log counts one response of ten or more as exploiting the reward, more than at its start", "warning",
            "definition: the log's own count, beyond its noise", persist=5, min_rows=2,
        ),
        "part_sinks": Clause(
            "the reward rises while one of its parts has lost two fifths of what it was", "warning",
            "as `answers_worse`, where the name says nothing; two fifths is a judgement, and no sound run of the corpus",
            persist=10, min_rows=5,
        ),
        "one_channel": Clause(
            "the reward rises while a channel has left its range", "warning",
            "as above, with one channel: a competent engineer would read samples", persist=8, min_rows=3,
        ),
        "entropy_alone": Clause(
            "the reward rises while the entropy is gone, and no other channel has left its range", "warning",
            "as `one_channel`; the policy may also have settled on one answer", persist=8, min_rows=3,
        ),
    }  # fmt: skip
    settings: ClassVar = {"gain": Setting(3.0, "times its noise by which the reward must have risen", min=0.0)}
    gain: float

    def find(self, view: View) -> Sequence[Finding]:
        return [*self._counted(view), *self._beside_the_reward(view)]

    @staticmethod
    def _counted(view: View) -> list[Finding]:
        """Exploits that whoever wrote the log has counted: no reward has to rise for them to be what they are."""
        for name in COUNTED:
            series = view.get(name)
            level, risen = series.level, series.level - min(series.start, series.first)
            if not level > SOME or not risen > max(0.5 * level, 3.0 * series.noise):
                continue
            message = f"The log counts {level:.0%} of the responses as exploiting the reward, from {level - risen:.0%}."
            clauses = ("counted", "counted_often") if level > MANY else ("counted",)
            return [Finding("", level, SOME, message, {"start": level - risen}, clause=clause) for clause in clauses]
        return []

    def _beside_the_reward(self, view: View) -> Sequence[Finding]:
        """Channels that leave their range while the reward rises."""
        series, reward = view.get("reward_mean"), view.reward
        if series.n < 8 or not reward.gain > self.gain * max(series.noise, 1e-12):
            return ()
        fallen = series.level < max(reward.start + 0.6 * reward.gain, series.first + reward.shift)
        if fallen and not self.raised:
            return ()  # or it only recovers from a fall in the first rows; what was raised is not over with the rise
        signs = [sign for sign in (*damage(view), *self._fallen(view)) if not sign.fades]
        strong = [sign for sign in signs if sign.strong]
        if not strong and len(signs) < 2:
            return self._slips(view) or self._of_parts(view)
        told = ", ".join(sign.words for sign in signs)
        rose = f"The reward rose by {series.level - reward.start:.3g}, to {series.level:.4g}"
        message = f"{rose}, while {told}: evidence of reward hacking."
        evidence = {"gain": reward.gain, "signs": float(len(signs))}
        found = [Finding("", float(len(signs)), 1.0, message, evidence, clause="one_channel")]
        if [sign.channel for sign in signs] == ["entropy"] and view.get("entropy_mean").level < view.get("entropy_mean").start:
            found.insert(0, Finding("", 1.0, 1.0, message, evidence, clause="entropy_alone"))
        if fallen:
            return found
        if any(sign.channel == "held_out" for sign in signs):
            clauses = ("held_out_alone", "held_out") if len(signs) > 1 else ("held_out_alone",)
            found += [Finding("", float(len(signs)), 2.0, message, evidence, clause=clause) for clause in clauses]
        elif len(signs) > 1 and strong:
            found.append(Finding("", float(len(signs)), 2.0, message, evidence, clause="several_channels"))
        return found

    @staticmethod
    def _slips(view: View) -> Sequence[Finding]:
        """A held-out quality whose best lies long behind, and that has fallen since beyond its noise."""
        for name, what in HELD_OUT.items():
            series = view.get(name)
            if series.n < 10 or view.index - series.high_index < max(10.0, LONG * view.index):
                continue
            fall = held_out_fall(view, name)
            if fall.lost > max(SLIPPED * fall.whole, 6.0 * fall.noise):
                fell = f"held-out {what} fell from {fall.best:.3g} to {fall.now:.3g}"
                message = f"The reward is at its best, {view.get('reward_mean').level:.4g}, while {fell}."
                return (Finding("", fall.now, fall.best - fall.lost, message, {"lost": fall.lost}, clause="held_out_slips"),)
        return ()

    @staticmethod
    def _of_parts(view: View) -> Sequence[Finding]:
        """The accuracy, or a part of the reward, that fell or did not rise although the reward rose far."""
        total, reward = view.get("reward_mean"), view.reward
        if total.n < 20 or not reward.gain > 5.0 * total.noise or reward.jump_index >= 0:
            return ()  # parts of a reward that was changed cannot be compared with the whole
        gain = total.slow - reward.start
        for name in ("accuracy", *view.components):
            part, name = view.get(name), name.removeprefix(COMPONENT)
            if part.n >= 20:
                found = _answers(name, part, gain) if CORRECT.search(name) else _sinks(name, part, gain)
                if found:
                    return found
        return ()

    def _fallen(self, view: View) -> list[Sign]:
        """Held-out diversity that falls while the reward rises."""
        signs = []
        diversity = view.get("eval_distinct_2")
        if diversity.n >= 4:
            fall = held_out_fall(view, "eval_distinct_2")
            if fall.lost > max(0.25 * abs(fall.best), 4.0 * fall.noise):
                signs.append(Sign("held_out", f"held-out diversity fell from {fall.best:.3g} to {fall.now:.3g}"))
        return signs


def _answers(name: str, part: Series, gain: float) -> Sequence[Finding]:
    """Whether fewer answers are right than before, or hardly any, while the reward has risen by `gain`."""
    what = "the accuracy" if name == "accuracy" else f"its component {name}"
    if _has_fallen(part, FALLEN):
        message = f"The reward rose by {gain:.3g}, while {what} fell from {part.base:.3g} to {part.slow:.3g}."
        clauses = ("answers_worse", "answers_lost") if part.slow < LEFT * part.base else ("answers_worse",)
        return [Finding("", part.slow, part.base, message, {"gain": gain}, clause=clause) for clause in clauses]
    wrong = part.slow < NONE_RIGHT or (part.slow < FEW_RIGHT and part.n >= LATE)
    if wrong and part.slow - part.start < 0.05 * gain:
        message = f"The reward rose by {gain:.3g}, while {what} is {part.slow:.3g}, from {part.start:.3g}."
        return (Finding("", part.slow, 0.05 * gain, message, {"gain": gain}, clause="hollow"),)
    return ()


def _sinks(name: str, part: Series, gain: float) -> Sequence[Finding]:
    """Whether a part of the reward whose name says nothing has lost two fifths."""
    if NO_QUALITY.search(name) or not _has_fallen(part, SUNK):
        return ()
    message = f"The reward rose by {gain:.3g}, while its component {name} fell from {part.base:.3g} to {part.slow:.3g}."
    return (Finding("", part.slow, (1.0 - SUNK) * part.base, message, {"gain": gain}, clause="part_sinks"),)


def _has_fallen(part: Series, share: float) -> bool:
    """Whether a part is lower than in the first twenty rows by this share, and beyond the noise of a row.

    A part between 0 and 1 must also have lost a quarter of the spread that responses of 0 and 1 have.
    """
    before = part.base
    if not before > 0.0 or part.n < 2 * EARLY or min(part.low, part.first) < 0.0:
        return False
    chance = 0.25 * sqrt(before * (1.0 - before)) if before < 1.0 else 0.0
    return before - part.slow > max(share * before, chance, SURELY * part.noise)
