"""Responses shrink to nothing."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import ClassVar

from rldk.core.text import listed
from rldk.detectors.base import NOTE, Clause, Detector, Finding, Setting, View
from rldk.signals.channels import CHANNEL_METRICS, harm, length_words
from rldk.signals.reward import SCORES, score_of
from rldk.signals.series import RECENT

__all__ = ["LengthCollapse"]

NOTHING = 4.0  # length limits up to this many tokens leave no room for an answer


class LengthCollapse(Detector):
    """Responses have shrunk to a few tokens, or are cut off after a few tokens.

    What it catches: a mean length that has fallen to a fifth of its start and stays there. Critical if the reward has
        fallen since, or a strong channel (entropy, KL) has left its range. Also a limit that cuts off every response after
        four tokens or fewer.
    Why it matters: a policy that gives empty answers has found the cheapest way to avoid a penalty; one that is cut off after
        four tokens cannot learn to answer.
    When it misfires: a length penalty, or a task with short answers, is a good reason for shorter responses: with a
        reward near its best and nothing else out of range it is a note.
    What to do: lower the length penalty or the penalty on the end token, check that empty answers score worst, and raise
        the length limit.
    References: none.
    """

    __slots__ = ("share",)
    type: ClassVar[str] = "length_collapse"
    family: ClassVar[str] = "length"
    needs: ClassVar = (("rollout_length_mean", "max_response_length"),)
    panels: ClassVar = ("length", "truncated")
    reads: ClassVar = (*SCORES, *CHANNEL_METRICS, "rollout_length_max")
    advice: ClassVar[str] = (
        "Lower the length penalty, raise the length limit, and check that empty or trivial answers score worst."
    )
    clear: ClassVar[int] = 8
    clauses: ClassVar = {
        "with_damage": Clause(
            "responses shrank to a fifth while the reward fell or another channel left its range", "critical",
            "corroboration by an independent channel", persist=6, min_rows=3,
        ),
        "shrunk": Clause(
            "responses shrank to a fifth, and the reward has not improved", "warning",
            "corpus: 86 sound runs keep 47 % of their length or more", persist=8, min_rows=3,
        ),
        "brief": Clause("responses shrank to a fifth while the reward rose", NOTE, "as above", persist=8, min_rows=3),
        "cut_short": Clause(
            "every response is cut off after four tokens or fewer", "critical",
            "definition: no answer fits into four tokens", persist=5, min_rows=3,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "share": Setting(0.2, "share of its start below which the length counts as collapsed", min=0.0, max=1.0)
    }
    share: float

    def find(self, view: View) -> Sequence[Finding]:
        length, cut, ended = view.get("rollout_length_mean"), view.get("truncated_frac"), view.get("eos_frac")
        limit = view.get("max_response_length").last
        longest = view.get("rollout_length_max")
        limit = limit if limit > 0.0 else longest.high if longest.first <= NOTHING else nan  # no longer response was ever seen
        if cut.first < 0.5 or ended.first > 0.5:
            limit = nan  # short answers that ended by themselves before anything was learnt
        if 0.0 < limit <= NOTHING or (cut.n >= 3 and cut.level > 0.9 and 0.0 < length.level <= NOTHING):
            ceiling = limit if 0.0 < limit <= NOTHING else length.level
            message = f"Responses are cut off after {ceiling:.3g} tokens."
            return (Finding("", ceiling, NOTHING, message, {"length": ceiling}, clause="cut_short"),)
        start = max(length.start, length.first)  # the first update may be enough to lose it
        if not length.ready or not length.level < self.share * start:
            return ()
        damaged, score = harm(view, besides="length"), score_of(view)
        if not damaged and 0 < score.n < 2 * RECENT:
            return ()  # too few rows to see whether the reward rises
        what, unit = length_words(view)
        message = f"{what} shrank from {start:.4g} to {length.level:.4g}{unit} on average"
        evidence = {"length_start": start, "length": length.level}
        threshold = self.share * start
        brief = not damaged and view.reward.improves(score)
        severity = NOTE if brief and self.raised else ""  # a reward that rises later does not undo what was told
        clause = "brief" if brief and not self.raised else "shrunk"
        found = [Finding(severity, length.level, threshold, f"{message}.", evidence, clause=clause)]
        if damaged:
            text = f"{message}, while {listed(damaged)}."
            found.append(Finding("", length.level, threshold, text, evidence, clause="with_damage"))
        return found
