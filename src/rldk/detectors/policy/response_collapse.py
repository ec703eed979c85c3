"""The policy writes one text, or repeats the same words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import Clause, Detector, Finding, Setting, View
from rldk.signals.channels import CHANNEL_METRICS, VARIETY, damage, is_alone, reward_has_fallen
from rldk.signals.reward import SCORES, score_of

__all__ = ["ResponseCollapse"]

VARIED = 0.5  # share of different responses above which a fall counts
OWN_TEXT = 0.9  # different texts per prompt from which the prompts have different answers
SAMPLED = 0.1  # entropy (nats per token) from which sampled responses of a few tokens differ
GROWTH = 0.3  # rise of the repetition over its start that counts
SHORT, MORE, MORE_GROWTH = 200.0, 0.2, 0.15  # tokens up to which text hardly repeats itself; level and rise that are too much
MIN_BATCH = 8  # number of responses from which a single text is less than `share`
MIN_LENGTH = 8  # tokens below which only few answers are possible, such as yes and no


class ResponseCollapse(Detector):
    """The policy writes the same response to every prompt, or repeats itself within a response.

    What it catches: no more than 15 % of the responses of a rollout differ, after more than half did, or since the first row;
        or no more than 15 % of their endings do, after more than half did; or more than 60 % of the pairs of neighbouring tokens
        in a response are repetitions, far more than at the start, or 20 % of those of responses up to 200 tokens; or all
        responses to a prompt have been equal since the first row, so that a group has nothing to compare.
    Why it matters: a policy that writes one text no longer answers its prompts, and equal responses give nothing to learn
        from. The reward may not show it, since one text can satisfy a weak reward.
    When it misfires: tasks with a handful of right answers (yes or no, a class) end in a few texts; while the reward rises
        and nothing else has left its range that is only a warning. One text per prompt, in groups of responses to the same
        prompt, is not one text for all, and is not judged. Responses to a single prompt may become alike as it is
        learnt: if a rollout has only one prompt, a rising reward excuses that. At the start, responses of fewer than 8 tokens
        are not judged. With fewer than 7 responses per rollout, one text is more than 15 % and cannot be detected. A format that
        is asked for and learnt (every response closes with one fixed sentence) also makes endings alike: read samples.
    What to do: read samples; go back to a checkpoint before the fall, lower the learning rate, raise the entropy bonus, the
        temperature or the KL penalty. If it is so from the start, check that sampling is on.
    References: Holtzman et al. 2020, The Curious Case of Neural Text Degeneration; Welleck et al. 2020, Neural Text
        Generation with Unlikelihood Training.
    """

    __slots__ = ("repetition", "share")
    type: ClassVar[str] = "response_collapse"
    family: ClassVar[str] = "policy"
    needs: ClassVar = (("distinct_responses_frac", "repetition_frac"),)
    panels: ClassVar = ("quality", "entropy", "reward")
    reads: ClassVar = ("distinct_endings_frac", *SCORES, "rollout_buffer_size", "batch_size", "num_generations", *CHANNEL_METRICS)
    advice: ClassVar[str] = (
        "Read samples; go back to before it; lower the learning rate, raise the entropy bonus, temperature or KL penalty."
    )
    clear: ClassVar[int] = 8
    clauses: ClassVar = {
        "one_text": Clause(
            "hardly any two responses of a rollout differ, although most of them used to", "critical",
            "definition: different prompts have different answers", persist=5, min_rows=2,
        ),
        "one_text_from_start": Clause(
            "hardly any two responses of a rollout have differed since the first row", "warning",
            "definition: sampled responses differ, unless sampling is off or the model has one answer", persist=8, min_rows=2,
        ),
        "no_variety": Clause(
            "all responses to a prompt have been equal since the first row", "critical",
            "definition: a group of equal responses has no advantage to learn from", persist=8, min_rows=3,
        ),
        "few_endings": Clause(
            "nearly all responses end in the same few phrases, although most endings used to differ", "warning",
            "definition: what closes every answer, whatever was asked, is written for the reward", persist=5, min_rows=2,
        ),
        "repeats": Clause(
            "most of a response is repetition, unlike at the start", "critical",
            "definition: text rarely repeats a pair of tokens, and `!!!!` does nothing else", persist=5, min_rows=2,
        ),
        "repeats_more": Clause(
            "short responses repeat themselves far more than at the start", "warning",
            "corpus: 110 sound runs end with at most 16 % of repeated pairs, 14 points more than at the start; a text of a few "
            "hundred tokens repeats pairs without being repetitive", persist=6, min_rows=3,
        ),
    }  # fmt: skip
    settings: ClassVar = {
        "share": Setting(0.15, "share of distinct responses at or below which the policy writes one text", min=0.0, max=1.0),
        "repetition": Setting(0.6, "share of repeated pairs of tokens above which a response is repetition", min=0.0, max=1.0),
    }
    share: float
    repetition: float

    def find(self, view: View) -> Sequence[Finding]:
        distinct, repeated = view.get("distinct_responses_frac"), view.get("repetition_frac")
        alike, repeats = distinct.level <= self.share, repeated.level > MORE
        endings = view.get("distinct_endings_frac")
        if not alike and not repeats and not endings.level <= self.share:
            return ()
        found = [self._one_text(view), self._from_start(view), self._no_variety(view)] if alike else [self._few_endings(view)]
        return [one for one in (*found, self._repeats(view) if repeats else None) if one is not None]

    def _one_text(self, view: View) -> Finding | None:
        distinct = view.get("distinct_responses_frac")
        best = max(distinct.first, distinct.high)
        excused, alone = _is_excused(view), _has_one_prompt(view)
        if not best > VARIED or (excused and alone):
            return None
        if not alone and distinct.level * view.get("num_generations").last > OWN_TEXT:
            return None  # every prompt has a text of its own
        message = f"The share of distinct responses fell from {best:.0%} to {distinct.level:.0%}."
        evidence = {"distinct_best": best, "distinct": distinct.level}
        return Finding("warning" if excused else "", distinct.level, self.share, message, evidence, clause="one_text")

    def _few_endings(self, view: View) -> Finding | None:
        endings = view.get("distinct_endings_frac")
        best = max(endings.first, endings.high)
        if not endings.level <= self.share or not best > VARIED:
            return None
        message = f"The share of distinct endings among the responses fell from {best:.0%} to {endings.level:.0%}."
        evidence = {"endings_best": best, "endings": endings.level}
        return Finding("", endings.level, self.share, message, evidence, clause="few_endings")

    def _from_start(self, view: View) -> Finding | None:
        distinct, length = view.get("distinct_responses_frac"), view.get("rollout_length_mean")
        best = max(distinct.first, distinct.high, distinct.last)
        if not best <= self.share or _batch(view) < MIN_BATCH or length.level < MIN_LENGTH:
            return None
        message = f"No more than {distinct.level:.0%} of the responses have differed since the first row."
        evidence = {"distinct": distinct.level}
        return Finding("", distinct.level, self.share, message, evidence, clause="one_text_from_start")

    def _no_variety(self, view: View) -> Finding | None:
        distinct, size = view.get("distinct_responses_frac"), view.get("num_generations").last
        best = max(distinct.first, distinct.high, distinct.last)
        if not size >= 2.0 or not best <= 1.001 / size:
            return None
        entropy = view.get("entropy_mean").level
        also = f" The entropy is {entropy:.2g}, so they should differ: sampling seems to be off." if entropy > SAMPLED else ""
        message = f"All {size:.0f} responses to a prompt have been equal since the first row.{also}"
        return Finding("", distinct.level, 1.0 / size, message, {"distinct": distinct.level}, clause="no_variety")

    def advice_for(self, view: View, finding: Finding) -> str:
        if finding.clause == "no_variety":
            return "Turn sampling on: temperature 1, no `top_k`, `top_p` 1. If the model has only one answer, use another model."
        return self.advice

    def _repeats(self, view: View) -> Finding | None:
        repeated = view.get("repetition_frac")
        start = min(repeated.first, repeated.start) if repeated.ready else repeated.first
        message = f"The share of repeated pairs of tokens in a response rose from {start:.0%} to {repeated.level:.0%}."
        evidence = {"repetition_start": start, "repetition": repeated.level}
        limit = max(self.repetition, start + GROWTH)
        if repeated.level > limit:
            damaged = (damage(view) or reward_has_fallen(view)) and not _is_excused(view)
            return Finding("" if damaged else "warning", repeated.level, limit, message, evidence, clause="repeats")
        limit = max(MORE, start + MORE_GROWTH)
        if repeated.level > limit and view.get("rollout_length_mean").level < SHORT:
            return Finding("", repeated.level, limit, message, evidence, clause="repeats_more")
        return None


def _is_excused(view: View) -> bool:
    """Whether the reward rises or the task is solved, and nothing else has left its range except what depends on variety."""
    score = score_of(view)
    return is_alone(view, *VARIETY) and (view.reward.is_solved(score) or view.reward.thrives(score))


def _batch(view: View) -> float:
    """Number of responses per rollout; NaN if it is not known."""
    return view.first("rollout_buffer_size", "batch_size").last


def _has_one_prompt(view: View) -> bool:
    """Whether all responses of a rollout answer the same prompt; false if that is not known."""
    return _batch(view) <= view.get("num_generations").last
