"""Responses do not end."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.channels import CHANNEL_METRICS, ending_share, is_alone
from rldk.signals.reward import SCORES, score_of

__all__ = ["EosStarvation"]

EXPECTED = 0.5  # end tokens per response, by the policy's own probabilities, that cannot all be missing
SEEN = 0.2  # share of the responses that should end, below which something keeps them from it
MOSTLY_CUT = 0.25  # share of responses that end below which most are truncated


class EosStarvation(Detector):
    """Responses no longer emit the end token, or never did.

    What it catches: the share of responses that emit the end token falls from most of them to hardly any, whatever the reward
        does; or no response has ended since the first row. It is critical if the policy gives the end token enough
        probability: then something outside the policy keeps its responses from ending. Also most responses being truncated
        while the trainer leaves truncated ones out of the update.
    Why it matters: a response that is cut off is scored on half an answer. A policy that stops ending its responses has learnt
        that length is rewarded, or has lost the end token.
    When it misfires: base models and tasks with a fixed length fill the limit from the start and may learn anyway: while the
        reward rises this is only a warning. The same holds for a model that seldom ended its responses and now ends fewer,
        while the reward is near its best and nothing else has left its range.
    What to do: raise the length limit, check the stop tokens and the chat template, penalise responses that are cut off, or
        start from a model tuned to stop.
    References: TRL's `missing_eos_penalty`; Yu et al. 2025, DAPO (overlong reward shaping).
    """

    __slots__ = ("_at_once", "_before", "share")
    type: ClassVar[str] = "eos_starvation"
    family: ClassVar[str] = "length"
    needs: ClassVar = (("eos_frac", "eos_count", "truncated_frac"),)
    panels: ClassVar = ("truncated", "length")
    reads: ClassVar = (*SCORES, *CHANNEL_METRICS, "eos_expected")
    advice: ClassVar[str] = "Raise the length limit, check stop tokens and chat template, or start from a model tuned to stop."
    clear: ClassVar[int] = 8
    clauses: ClassVar = {
        "stopped": Clause(
            "responses used to end and no longer do", "critical",
            "public and own runs: the end-token count fell below a tenth of its best in 6 failing runs and no healthy run, and "
            "nine in ten responses became truncated in 13 failing and 2 healthy runs", persist=10, min_rows=4,
        ),
        "stopped_at_once": Clause(
            "from one row to the next hardly any response ends", "critical",
            "as `stopped`; a policy learns to ramble over several updates, so that the sampler or the stop token has changed",
            persist=5, min_rows=3,
        ),
        "fewer": Clause(
            "half of the responses that used to end no longer do", "warning",
            "corpus: 95 % of 86 sound runs keep three quarters of their endings; the lowest keeps 31 %", persist=12, min_rows=3,
        ),
        "blocked": Clause(
            "the policy gives the end token enough probability, but hardly any response ends", "critical",
            "definition: of 64 responses with half an end token each, chance leaves a fifth of those that should end once in 1e8",
            persist=3, min_rows=2,
        ),
        "never": Clause(
            "no response has ended since the first row, and the reward does not rise", "critical",
            "public and own runs: the end-token count is 0 throughout in 9 failing runs and no healthy run",
            persist=20, min_rows=10,
        ),
        "never_and_stuck": Clause(
            "no response has ended since the first row, and most rewards repeat", "critical",
            "cause and effect: half an answer cannot be scored", persist=10, min_rows=5,
        ),
        "fills_limit": Clause(
            "every response has been truncated since the first row, and the reward rises", "warning",
            "healthy runs of base models and of tasks with a fixed length", persist=10, min_rows=6,
        ),
        "mostly_cut": Clause(
            "three in four responses have been truncated since the first row, and the reward does not rise", "warning",
            "cause and effect: most answers are scored without their end; no sound run of the corpus", persist=20, min_rows=8,
        ),
        "cut_and_stuck": Clause(
            "three in four responses have been truncated over many updates, and nothing was learnt", "critical",
            "as above", persist=50, min_rows=15,
        ),
        "left_out": Clause(
            "more than half of the responses are truncated, and the trainer leaves those out of the update", "warning",
            "definition: `mask_truncated_completions` learns from the other responses alone", persist=5, min_rows=1,
        ),
        "almost_all_left_out": Clause(
            "nine in ten responses are truncated, and the trainer leaves those out of the update", "critical",
            "as above: what is left is a handful of responses, the shortest ones", persist=10, min_rows=4,
        ),
        "never_yet": Clause(
            "no response has ended since the first row", "warning", "as above", persist=10, min_rows=6,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "share": Setting(0.1, "share of responses that end, below which they count as not ending", min=0.0, max=1.0)
    }
    share: float
    _before: float
    _at_once: bool

    def reset(self) -> None:
        super().reset()
        self._before, self._at_once = 0.0, False

    def _follow(self, view: View, best: float) -> None:
        """Remember whether the share of endings fell to almost nothing from one row to the next."""
        ended, cut, count = view.get("eos_frac"), view.get("truncated_frac"), view.get("eos_count")
        last = ended.last if ended.n else 1.0 - cut.last if cut.n else count.last / max(count.high, count.first, 1.0)
        before, self._before = self._before, last
        if last < 0.5 * best <= before:
            self._at_once = last < 0.15 * best and before > 0.7 * best and best > 0.6 and view.steps_per_row <= 2.0

    def find(self, view: View) -> Sequence[Finding]:
        now, best = ending_share(view)
        self._follow(view, best)
        return [*self._found(view, now, best), *_left_out(view, now)]

    def _found(self, view: View, now: float, best: float) -> Sequence[Finding]:
        evidence = {"ending": now, "ending_best": best}
        blocked = _blocked(view, now, best)
        if best <= 0.02:
            message = "No response has emitted the end token since the first row."
            score = score_of(view)
            works = view.reward.improves(score) or (0.6 < score.base <= 1.0 and score.high <= 1.0 + 1e-6)
            counted = view.first("eos_frac", "eos_count").n > 0  # a response at the limit may still contain its end token
            stuck = score.n >= 8 and score.repeats > 0.5 * score.n  # most rewards are the same number as the one before
            clauses = ("never_yet", "never") if not works else ("never_yet",) if counted else ("fills_limit",)
            if stuck and not works:
                clauses = (*clauses, "never_and_stuck")
            return [*blocked, *(Finding("", now, self.share, message, evidence, clause=clause) for clause in clauses)]
        if blocked:
            return blocked
        if now < MOSTLY_CUT and _first_share(view) < MOSTLY_CUT and not view.reward.improves(score_of(view)):
            message = f"Only {now:.0%} of the responses end, as in the first rows; the others are truncated."
            return [Finding("", now, MOSTLY_CUT, message, evidence, clause=clause) for clause in ("mostly_cut", "cut_and_stuck")]
        if best < 0.3 or not now < 0.5 * best:
            return ()
        message = f"The share of responses that emit the end token fell from {best:.0%} to {now:.0%}."
        fewer = Finding("", now, 0.5 * best, message, evidence, clause="fewer")
        if now > self.share * best:
            return (fewer,)
        seldom = best < 0.8 and view.reward.thrives(score_of(view)) and is_alone(view, "ending", "length", "spread")
        severity = "warning" if seldom else ""
        clauses = ("stopped", "stopped_at_once") if self._at_once else ("stopped",)
        return (fewer, *(Finding(severity, now, self.share, message, evidence, clause=clause) for clause in clauses))


def _blocked(view: View, now: float, best: float) -> list[Finding]:
    """Whether far fewer responses end than the policy's own probabilities of the end token say."""
    expected = view.get("eos_expected")
    share = 1.0 - exp(-expected.level) if expected.n >= 2 and expected.level > EXPECTED else 0.0
    if not max(now, best) < SEEN * share:
        return []
    message = f"By the policy's own probabilities {share:.0%} of the responses should end; {now:.0%} do."
    return [Finding("", now, SEEN * share, message, {"ending": now, "expected": share}, clause="blocked")]


def _left_out(view: View, now: float) -> Sequence[Finding]:
    """Whether the trainer leaves most responses out of the update because they are truncated."""
    if now > 0.5 or view.setting("excludes_truncated") != 1.0:
        return ()
    message = f"{1.0 - now:.0%} of the responses are truncated, and the trainer leaves those out of the update."
    clauses = ("left_out", "almost_all_left_out") if now < 0.1 else ("left_out",)
    return [Finding("", now, 0.5, message, {"ending": now}, clause=clause) for clause in clauses]


def _first_share(view: View) -> float:
    """The share of responses that ended in the first rows; 1 where it is not logged."""
    ended, cut = view.get("eos_frac"), view.get("truncated_frac")
    return ended.start if ended.ready else 1.0 - cut.start if cut.ready else 1.0
