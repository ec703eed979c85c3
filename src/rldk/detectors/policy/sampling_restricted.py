"""Responses are not sampled from the policy that is trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rldk.detectors.base import NOTE, Clause, Detector, Finding, View

__all__ = ["SamplingRestricted"]

GREEDY_P = 0.05
FEW_TOKENS, SOME_TOKENS = 5, 20
SMALL_P, REDUCED_P = 0.6, 0.9
STRONG, SLIGHT = 1.2, 1.02  # repetition penalties


class SamplingRestricted(Detector):
    """The sampler leaves out or penalises tokens that the policy would write.

    What it catches: a `top_k` of 1 or a `top_p` below 0.05, which always give the same response; a `top_k` of up to 5, a `top_p`
        below 0.6 or a repetition penalty of 1.2 or more. Milder restrictions are a note.
    Why it matters: the update assumes that the responses come from the policy. Tokens that are never sampled are never
        corrected, so that the policy without the restriction, the one that is used, may become worse while the reward rises.
    When it misfires: a sampler may be restricted on purpose where the trainer corrects for it.
    What to do: sample with `top_p` 1, without `top_k`, and with a repetition penalty of 1.
    References: TRL issue 6789 (`top_p` biases the ratio).
    """

    __slots__ = ()
    type: ClassVar[str] = "sampling_restricted"
    family: ClassVar[str] = "policy"
    needs: ClassVar = (("top_p", "top_k", "repetition_penalty"),)
    panels: ClassVar = ("entropy", "reward")
    special: ClassVar[bool] = True
    advice: ClassVar[str] = "Sample with `top_p` 1, without `top_k`, and with a repetition penalty of 1."
    clear: ClassVar[int] = 3
    clauses: ClassVar = {
        "greedy": Clause(
            "only the likeliest token is ever sampled", "critical",
            "definition: all responses to a prompt are the same, and so are their rewards", persist=1, min_rows=1,
        ),
        "restricted": Clause(
            "the sampler leaves out or penalises much of what the policy would write", "warning",
            "definition: the ratio of the update is that of another distribution; recipes use `top_p` 1 and no penalty",
            persist=1, min_rows=1,
        ),
        "reduced": Clause(
            "the sampler leaves out or penalises some of what the policy would write", NOTE, "as above", persist=1, min_rows=1,
        ),
    }  # fmt: skip

    def find(self, view: View) -> Sequence[Finding]:
        share, tokens, penalty = (view.get(name).last for name in ("top_p", "top_k", "repetition_penalty"))
        if tokens == 1.0 or 0.0 < share < GREEDY_P:
            return (self._finding("greedy", share, tokens, penalty),)
        if 0.0 < share < SMALL_P or 0.0 < tokens <= FEW_TOKENS or not 1.0 / STRONG < _or(penalty) < STRONG:
            return (self._finding("restricted", share, tokens, penalty),)
        if 0.0 < share < REDUCED_P or 0.0 < tokens <= SOME_TOKENS or not 1.0 / SLIGHT < _or(penalty) < SLIGHT:
            return (self._finding("reduced", share, tokens, penalty),)
        return ()

    @staticmethod
    def _finding(clause: str, share: float, tokens: float, penalty: float) -> Finding:
        given = {"top_p": share, "top_k": tokens, "repetition_penalty": penalty}
        known = {name: value for name, value in given.items() if value == value}
        named = {name: value for name, value in known.items() if value != 1.0 or name == "top_k"}  # 1 restricts nothing
        words = ", ".join(f"{name} {value:g}" for name, value in named.items())
        message = f"Responses are not sampled from the policy as it is trained: {words}."
        return Finding("", next(iter(named.values())), 1.0, message, known, clause=clause)


def _or(penalty: float) -> float:
    """A repetition penalty that is not known is none."""
    return penalty if penalty == penalty else 1.0
